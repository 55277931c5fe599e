#pragma once

// Random modules of the IR that use every part of its text form. They are sound as graphs (order,
// names, producers), but not as models: attributes and types do not fit the operators.

#include <bit>
#include <cstring>

#include "ir/ir.h"
#include "ops/op_table.h"
#include "testing/random.h"

namespace tessera::testing {

class RandomModule {
 public:
  explicit RandomModule(Random& random) : random_(random) {}

  ir::Module make() {
    ir::Module module;
    module.name = text();
    for (std::int64_t i = random_.integer(0, 3); i > 0; --i) module.metadata[text()] = text();
    module.symbols = {
        {"batch", {1, 8}}, {"p2o.Dim.0", {}}, {"a `b` \\c", {0, random_.integer(0, 99)}}};
    for (int i = 0; i < 4; ++i) module.source_nodes.push_back({text(), text()});
    for (std::int64_t i = random_.integer(1, 2); i > 0; --i) {
      ir::Method& method = module.methods.emplace_back();
      method.name = text();
      method.weight = random_.chance(0.5) ? 1 : random_.real(0, 10);
      method.graph = std::move(*graph(0, {}));
      if (random_.chance(0.3))
        method.states.push_back({text(), text(), random_.chance(0.5) ? tensor() : Tensor()});
    }
    return module;
  }

  // Any bytes.
  std::string text() {
    static const std::vector<std::string> pieces = {
        "x", "conv1", "/", "a b", "\"", "\\", "\n", "\xff", "é", "%", std::string(1, '\0'), "]"};
    std::string result;
    for (std::int64_t i = random_.integer(0, 4); i > 0; --i) result += random_.pick(pieces);
    return result;
  }

  Dim dim() {
    switch (random_.integer(0, 4)) {
      case 0: return Dim::symbol("batch");
      case 1: return Dim::symbol("p2o.Dim.0") * 2 + 1;
      case 2: return floordiv(Dim::symbol("a `b` \\c") + 3, 2);
      default: return random_.integer(0, 9);
    }
  }

  ValueType type(int depth = 0) {
    if (depth < 2 && random_.chance(0.15)) return ValueType::sequence(type(depth + 1));
    if (depth < 2 && random_.chance(0.15)) return ValueType::optional(type(depth + 1));
    const auto dtype = static_cast<DType>(random_.integer(0, kDTypeCount - 1));
    if (random_.chance(0.1)) return ValueType::tensor(dtype, std::nullopt);
    Shape shape;
    for (std::int64_t i = random_.integer(0, 3); i > 0; --i) shape.push_back(dim());
    return ValueType::tensor(dtype, shape);
  }

  // Any dtype, any bits.
  Tensor tensor() {
    const auto dtype = static_cast<DType>(random_.integer(1, kDTypeCount - 1));
    Dims dims;
    for (std::int64_t i = random_.integer(0, 2); i > 0; --i) dims.push_back(random_.integer(0, 5));
    Tensor made = *Tensor::zeros(dtype, dims);
    void* data = made.mutable_data();
    if (dtype == DType::kString) {
      for (std::int64_t i = 0; i < made.numel(); ++i) static_cast<std::string*>(data)[i] = text();
      return made;
    }
    const std::int64_t used_bits = made.numel() * bits_of(dtype);
    for (std::int64_t i = 0; i < made.nbytes(); ++i) {
      auto byte = static_cast<unsigned>(random_.bits() & 0xffU);
      if (random_.chance(0.3))
        byte = random_.chance(0.5) ? 0xff : 0x7f;  // not finite, more often than by chance
      if (used_bits < (i + 1) * 8) byte &= (1U << static_cast<unsigned>(used_bits - i * 8)) - 1;
      if (dtype == DType::kBool) byte &= 1U;
      static_cast<unsigned char*>(data)[i] = static_cast<unsigned char>(byte);
    }
    return made;
  }

  float any_float() {
    static const std::vector<std::uint32_t> special = {
        0x7fc00000, 0x7fc12345, 0xffc00000, 0x7f800000, 0xff800000, 0x80000000, 0, 1, 0x7f7fffff};
    return std::bit_cast<float>(random_.chance(0.5) ? random_.pick(special)
                                                    : static_cast<std::uint32_t>(random_.bits()));
  }

  ops::AttributeValue attribute() {
    const auto list = [&](auto make) {
      std::vector<decltype(make())> items;
      for (std::int64_t i = random_.integer(0, 3); i > 0; --i) items.push_back(make());
      return items;
    };
    const auto any_int = [&] {
      return random_.chance(0.5) ? random_.integer(-3, 3)
                                 : static_cast<std::int64_t>(random_.bits());
    };
    switch (random_.integer(0, 8)) {
      case 0: return any_int();
      case 1: return any_float();
      case 2: return text();
      case 3: return random_.chance(0.1) ? Tensor() : tensor();
      case 4: return type();
      case 5: return list(any_int);
      case 6: return list([&] { return any_float(); });
      case 7: return list([&] { return text(); });
      default: return list([&] { return tensor(); });
    }
  }

 private:
  std::optional<DimTensor> known() {
    if (random_.chance(0.8)) return std::nullopt;
    DimTensor made;
    made.scalar = random_.chance(0.3);
    for (std::int64_t i = made.scalar ? 1 : random_.integer(0, 3); i > 0; --i)
      made.elements.push_back(dim());
    return made;
  }

  std::string value_name() { return text() + std::to_string(number_++); }

  // The captured values of the outer graph become its last inputs.
  std::unique_ptr<ir::Graph> graph(int depth, const std::vector<ValueType>& captured) {
    auto made = std::make_unique<ir::Graph>();
    made->name = text();
    std::vector<ir::ValueId> values;
    for (std::int64_t i = random_.integer(1, 2); i > 0; --i)
      values.push_back(made->add_input(value_name(), type()));
    for (const ValueType& outer : captured) values.push_back(made->add_input(value_name(), outer));
    for (std::int64_t i = random_.integer(0, 5); i > 0; --i) {
      if (random_.chance(0.4)) values.push_back(made->add_constant(value_name(), tensor()));
      add_node(*made, values, depth);
    }
    for (const ir::ValueId id : values) made->value(id).known = known();
    for (std::int64_t i = random_.integer(1, 2); i > 0; --i)
      made->outputs.push_back(random_.pick(values));
    return made;
  }

  void add_node(ir::Graph& made, std::vector<ir::ValueId>& values, int depth) {
    static const std::vector<std::string> ops = {"Relu", "Add", "Conv", "MatMul", "Exp"};
    ir::Node node;
    node.op = ops::find_op("", random_.pick(ops));
    node.name = value_name();
    for (std::int64_t i = random_.integer(0, 3); i > 0; --i)
      node.attributes.set(text(), attribute());
    for (std::int64_t i = random_.integer(0, 3); i > 0; --i) {
      node.inputs.push_back(random_.chance(0.2) ? ir::kNoValue : random_.pick(values));
    }
    std::vector<ir::ValueId> produced;
    for (std::int64_t i = random_.integer(0, 2); i > 0; --i) {
      const bool is_omitted = random_.chance(0.2);
      node.outputs.push_back(is_omitted ? ir::kNoValue : made.add_value(value_name(), type()));
      if (!is_omitted) produced.push_back(node.outputs.back());
    }
    for (std::int64_t i = depth < 2 && random_.chance(0.3) ? random_.integer(1, 2) : 0; i > 0;
         --i) {
      std::vector<ir::ValueId> captured;
      std::vector<ValueType> types;
      for (std::int64_t j = random_.integer(0, 2); j > 0; --j) {
        captured.push_back(random_.pick(values));
        types.push_back(made.value(captured.back()).type);
      }
      node.bodies.push_back(graph(depth + 1, types));
      node.captures.push_back(captured);
    }
    for (ir::OriginId origin = 0; origin < 4; ++origin) {
      if (random_.chance(0.4)) node.origins.push_back(origin);
    }
    made.add_node(std::move(node));
    values.insert(values.end(), produced.begin(), produced.end());
  }

  Random& random_;
  int number_ = 0;
};

}  // namespace tessera::testing
