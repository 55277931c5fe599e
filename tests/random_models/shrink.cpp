#include "random_models/shrink.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "random_models/draft.h"

namespace tessera::random_models {
namespace {

// The reference takes defaults where an import asks for the attribute.
bool has_required_attributes(const Node& node) {
  return std::ranges::all_of(node.op->attributes, [&](const ops::FormalAttr& attribute) {
    return !attribute.required || attribute.type == ops::AttrType::kGraph ||
           node.attributes.has(attribute.name);
  });
}

Value& value_of(Model& model, ValueId id) {
  return model.values[static_cast<std::size_t>(id)];
}

class Shrinker {
 public:
  Shrinker(Model model, const StillFails& fails, std::size_t budget)
      : model_(pruned(model)), fails_(fails), budget_(budget) {
    if (auto evaluation = evaluate(model_)) evaluation_ = *std::move(evaluation);
  }

  Model run() {
    if (evaluation_.empty()) return std::move(model_);
    bool smaller = true;
    while (smaller && budget_ > 0) {
      smaller = cut_outputs();
      smaller = replace_results() || smaller;
      smaller = bypass_nodes() || smaller;
      smaller = drop_attributes() || smaller;
      smaller = drop_operands() || smaller;
      smaller = fix_symbols() || smaller;
      smaller = shrink_dims() || smaller;
      smaller = simplify_elements() || smaller;
    }
    return std::move(model_);
  }

 private:
  // Takes the candidate in where it is valid and fails too.
  bool take(const Model& candidate) {
    if (budget_ == 0) return false;
    Model small = pruned(candidate);
    if (small.nodes.empty() || small.outputs.empty()) return false;
    if (!std::ranges::all_of(small.nodes, has_required_attributes)) return false;
    auto evaluation = evaluate(small);
    if (!evaluation) return false;
    --budget_;
    if (!fails_(small, *evaluation)) return false;
    model_ = std::move(small);
    evaluation_ = *std::move(evaluation);
    return true;
  }

  bool cut_outputs() {
    bool smaller = false;
    for (std::size_t i = 0; i < model_.outputs.size() && model_.outputs.size() > 1;) {
      Model alone = model_;
      alone.outputs = {model_.outputs[i]};
      if (take(alone)) return true;
      Model without = model_;
      without.outputs.erase(without.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      if (take(without))
        smaller = true;
      else
        ++i;
    }
    return smaller;
  }

  // The symbol whose sizes these are, among the inputs of the model.
  [[nodiscard]] std::string symbol_of(const Size& size) const {
    for (const Value& value : model_.values)
      for (std::size_t axis = 0; axis < value.symbols.size(); ++axis)
        if (!value.symbols[axis].empty() && value.elements[0].dims()[axis] == size[0] &&
            value.elements[1].dims()[axis] == size[1])
          return value.symbols[axis];
    return "";
  }

  // Turns the result into an input with the elements that it has; false where its sizes are none
  // that an input can have.
  bool make_input(Model& candidate, ValueId id) const {
    const auto& elements = evaluation_[static_cast<std::size_t>(id)];
    if (elements[0].held != nullptr ||
        elements[0].nominal.dims().size() != elements[1].nominal.dims().size())
      return false;
    Value& value = value_of(candidate, id);
    value.source = Source::kInput;
    value.elements = {elements[0].nominal, elements[1].nominal};
    value.symbols.clear();
    for (std::size_t axis = 0; axis < value.elements[0].dims().size(); ++axis) {
      const Size size{value.elements[0].dims()[axis], value.elements[1].dims()[axis]};
      value.symbols.push_back(is_fixed(size) ? "" : symbol_of(size));
      if (!is_fixed(size) && value.symbols.back().empty()) return false;
    }
    return true;
  }

  bool replace_results() {
    bool smaller = false;
    for (std::size_t i = model_.nodes.size(); i-- > 0;) {
      if (i >= model_.nodes.size()) continue;
      Model candidate = model_;
      bool possible = true;
      for (const ValueId id : candidate.nodes[i].outputs) {
        if (id == kOmitted) continue;
        possible = possible && make_input(candidate, id);
        std::erase(candidate.outputs, id);
      }
      candidate.nodes.erase(candidate.nodes.begin() + static_cast<std::ptrdiff_t>(i));
      if (possible && take(candidate)) smaller = true;
    }
    return smaller;
  }

  [[nodiscard]] bool same_type(ValueId a, ValueId b) const {
    for (std::size_t point = 0; point < kPoints; ++point) {
      if (evaluation_[static_cast<std::size_t>(a)][point].held != nullptr) return false;
      const Tensor& x = evaluation_[static_cast<std::size_t>(a)][point].nominal;
      const Tensor& y = evaluation_[static_cast<std::size_t>(b)][point].nominal;
      if (x.dtype() != y.dtype() || x.dims() != y.dims()) return false;
    }
    return true;
  }

  bool bypass_nodes() {
    bool smaller = false;
    for (std::size_t i = model_.nodes.size(); i-- > 0;) {
      if (i >= model_.nodes.size() || model_.nodes[i].outputs.size() != 1) continue;
      const ValueId out = model_.nodes[i].outputs.front();
      for (const ValueId in : model_.nodes[i].inputs) {
        if (in == kOmitted || !same_type(in, out)) continue;
        Model candidate = model_;
        candidate.nodes.erase(candidate.nodes.begin() + static_cast<std::ptrdiff_t>(i));
        for (Node& node : candidate.nodes) {
          std::ranges::replace(node.inputs, out, in);
          for (Body& body : node.bodies)
            for (auto& capture : body.captures)
              if (capture.second == out) {
                capture.second = in;
                value_of(body.graph, capture.first).name = value_of(candidate, in).name;
              }
        }
        std::erase(candidate.outputs, out);
        if (!take(candidate)) continue;
        smaller = true;
        break;
      }
    }
    return smaller;
  }

  bool drop_attributes() {
    bool smaller = false;
    for (std::size_t i = 0; i < model_.nodes.size(); ++i) {
      const auto entries = model_.nodes[i].attributes.entries();
      for (const auto& entry : entries) {
        Model candidate = model_;
        candidate.nodes[i].attributes.erase(entry.first);
        smaller = take(candidate) || smaller;
        if (i >= model_.nodes.size()) return smaller;
      }
    }
    return smaller;
  }

  bool drop_operands() {
    bool smaller = false;
    for (std::size_t i = 0; i < model_.nodes.size(); ++i) {
      for (std::size_t at = model_.nodes[i].inputs.size(); at-- > 0;) {
        Model candidate = model_;
        auto& inputs = candidate.nodes[i].inputs;
        if (at >= inputs.size() || inputs[at] == kOmitted) continue;
        if (at + 1 == inputs.size())
          inputs.pop_back();
        else
          inputs[at] = kOmitted;
        smaller = take(candidate) || smaller;
        if (i >= model_.nodes.size()) return smaller;
      }
    }
    return smaller;
  }

  bool fix_symbols() {
    const auto dynamic = [](const Value& value) {
      return std::ranges::any_of(value.symbols, [](const auto& name) { return !name.empty(); });
    };
    if (std::ranges::none_of(model_.values, dynamic)) return false;
    for (std::size_t point = 0; point < kPoints; ++point) {
      Model candidate = model_;
      for (Value& value : candidate.values) {
        if (value.source != Source::kInput) continue;
        value.symbols.assign(value.symbols.size(), "");
        value.elements = {value.elements[point], value.elements[point]};
      }
      if (take(candidate)) return true;
    }
    return false;
  }

  static Tensor cropped(const Tensor& tensor, std::size_t axis, std::int64_t size) {
    Dims dims = tensor.dims();
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
    const std::int64_t before = dims[axis];
    dims[axis] = size;
    if (!has_numbers(tensor.dtype())) return *Tensor::zeros(tensor.dtype(), dims);
    const std::vector<double> all = doubles(tensor);
    std::vector<double> kept;
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      if (i / inner % before < size) kept.push_back(all[static_cast<std::size_t>(i)]);
    return constant_tensor(tensor.dtype(), dims, kept);
  }

  // All inputs and constants with dims of that size, or only the one axis of the one value.
  bool crop(std::int64_t from, std::int64_t to, ValueId only, std::size_t only_axis) {
    Model candidate = model_;
    for (std::size_t id = 0; id < candidate.values.size(); ++id) {
      Value& value = candidate.values[id];
      if (value.source == Source::kNode) continue;
      if (only != kOmitted && static_cast<ValueId>(id) != only) continue;
      for (std::size_t axis = 0; axis < value.elements[0].dims().size(); ++axis) {
        if (only != kOmitted && axis != only_axis) continue;
        if (value.elements[0].dims()[axis] != from || value.elements[1].dims()[axis] != from)
          continue;
        for (Tensor& tensor : value.elements) tensor = cropped(tensor, axis, to);
      }
    }
    return take(candidate);
  }

  bool shrink_dims() {
    bool smaller = false;
    std::set<std::int64_t> sizes;
    for (const Value& value : model_.values)
      if (value.source != Source::kNode)
        for (const std::int64_t size : value.elements[0].dims())
          if (size > 1) sizes.insert(size);
    for (const std::int64_t size : sizes)
      smaller = crop(size, 1, kOmitted, 0) || crop(size, size / 2, kOmitted, 0) || smaller;
    for (std::size_t id = 0; id < model_.values.size(); ++id) {
      const std::size_t rank = model_.values[id].elements[0].dims().size();
      if (model_.values[id].source == Source::kNode) continue;
      for (std::size_t axis = 0; axis < rank && id < model_.values.size(); ++axis) {
        if (axis >= model_.values[id].elements[0].dims().size()) break;
        const std::int64_t size = model_.values[id].elements[0].dims()[axis];
        if (size < 2) continue;
        const auto at = static_cast<ValueId>(id);
        smaller = crop(size, 1, at, axis) || crop(size, size / 2, at, axis) || smaller;
      }
    }
    return smaller;
  }

  // Ones, then halves: numbers that a reader can follow.
  bool simplify_elements() {
    bool smaller = false;
    for (std::size_t id = 0; id < model_.values.size(); ++id) {
      if (model_.values[id].source == Source::kNode || simplified_.contains(model_.values[id].name))
        continue;
      simplified_.insert(model_.values[id].name);
      if (!has_numbers(model_.values[id].elements[0].dtype())) continue;
      for (const bool ones : {true, false}) {
        Model candidate = model_;
        for (Tensor& tensor : candidate.values[id].elements) {
          std::vector<double> values = doubles(tensor);
          for (double& value : values) value = ones ? 1 : std::round(value * 2) / 2;
          tensor = constant_tensor(tensor.dtype(), tensor.dims(), values);
        }
        if (!take(candidate)) continue;
        smaller = true;
        break;
      }
    }
    return smaller;
  }

  Model model_;
  Evaluation evaluation_;
  const StillFails& fails_;
  std::size_t budget_;
  std::set<std::string> simplified_;
};

}  // namespace

Model shrink(const Model& model, const StillFails& fails, std::size_t budget) {
  return Shrinker(model, fails, budget).run();
}

}  // namespace tessera::random_models
