#include "plan/random_case_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "ops/op_table.h"
#include "testing/random.h"

namespace tessera::plan {
namespace {

using backends::TensorForm;

std::vector<TensorForm> all_forms() {
  std::vector<TensorForm> forms;
  for (const DType dtype : {DType::kFp32, DType::kFp16})
    for (const Layout& layout :
         {Layout::row_major(), Layout::channels_last(4), Layout::channel_blocked(4, 8)})
      forms.push_back({layout, dtype});
  return forms;
}

// Draws the parts of a case one after the other.
class Generator {
 public:
  Generator(std::uint64_t seed, RandomCase& result)
      : random_(seed), case_(result), forms_(all_forms()) {}

  void graph() {
    case_.module.symbols = {{"n", {1, 64}}, {"m", {1, 64}}};
    case_.point = {{"n", random_.integer(1, 4)}, {"m", random_.integer(1, 4)}};
    ir::Method& method = case_.module.methods.emplace_back();
    method.name = "main";
    graph_ = &method.graph;
    const std::int64_t inputs = random_.integer(1, 2);
    for (std::int64_t i = 0; i < inputs; ++i) {
      const std::vector<Dim> batch = {Dim(1), Dim::symbol("n"), Dim::symbol("m")};
      values_.push_back(
          graph_->add_input("x" + std::to_string(i),
                            ValueType::tensor(DType::kFp32, Shape{random_.pick(batch), 8, 2, 2})));
    }
    const std::int64_t nodes =
        random_.chance(0.85) ? random_.integer(1, 8) : random_.integer(9, 12);
    for (std::int64_t i = 0; i < nodes; ++i) add_node(i);
    add_outputs();
  }

  void devices() {
    const std::int64_t count = random_.integer(1, 3);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string name = "d" + std::to_string(i);
      auto& device = case_.devices.add(name, random_.chance(0.4) ? "host" : name);
      auto& rates = device.mutable_info().rates;
      rates.launch_us = random_.chance(0.3) ? 0 : random_.real(0, 15);
      rates.sync_us = random_.chance(0.3) ? 0 : random_.real(0, 15);
      rates.link_latency_us = random_.real(0, 8);
      rates.link_gb_per_s = random_.real(0.01, 1);
      for (const TensorForm& from : forms_)
        for (const TensorForm& to : forms_)
          if ((from.layout == to.layout) != (from.dtype == to.dtype) && random_.chance(0.7))
            device.convert(from, to, random_.real(0, 20));
      devices_.push_back(&device);
    }
  }

  void covers() {
    const std::int64_t tries = random_.integer(0, 4);
    for (std::int64_t i = 0; i < tries; ++i) {
      std::set<std::size_t> nodes = {random_.index(graph_->nodes().size())};
      const std::int64_t steps = random_.integer(1, 3);
      for (std::int64_t k = 0; k < steps; ++k) {
        std::vector<std::size_t> next;
        for (const ir::ValueId value :
             graph_->nodes()[random_.pick(std::vector<std::size_t>(nodes.begin(), nodes.end()))]
                 ->outputs)
          for (const auto& use : graph_->uses(value))
            next.push_back(graph_->position_of(use.node->id));
        if (!next.empty()) nodes.insert(random_.pick(next));
      }
      if (nodes.size() > 1 && is_convex(nodes)) add_cover(nodes);
    }
  }

  void offers() {
    // Few alternatives where there are many nodes, so that all plans can be listed.
    const std::size_t nodes = graph_->nodes().size();
    const std::int64_t most = nodes <= 4 ? 6 : nodes <= 8 ? 3 : 2;
    for (const auto& node : graph_->nodes())
      offer(node->name, ir::work_item(case_.module, *graph_, *node), most, 1, 40);
    for (const ir::Cover& cover : case_.covers)
      offer("cover" + std::to_string(cover.id), ir::work_item(case_.module, *graph_, cover),
            random_.integer(0, 2), 0, 25.0 * static_cast<double>(cover.nodes.size()));
  }

 private:
  void add_node(std::int64_t number) {
    const ir::ValueId first = random_.pick(values_);
    const Shape shape = *graph_->value(first).type.shape;
    const auto channels = *shape[1].constant();
    const std::string name = "n" + std::to_string(number);
    ir::Node node;
    node.name = name;
    node.inputs = {first};
    node.origins = {static_cast<ir::OriginId>(number)};
    std::vector<Shape> results = {shape};
    const double kind = random_.real(0, 1);
    if (kind < 0.2 && channels >= 4) {
      node.op = ops::find_op("", "Split");
      node.attributes.set("num_outputs", std::int64_t{2});
      node.attributes.set("axis", std::int64_t{1});
      results.assign(2, Shape{shape[0], channels / 2, 2, 2});
    } else if (kind < 0.6) {
      node.op = ops::find_op("", "Add");
      node.inputs.push_back(second_operand(name, shape));
    } else {
      node.op = ops::find_op("", "Relu");
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      values_.push_back(graph_->add_value(name + "_" + std::to_string(k),
                                          ValueType::tensor(DType::kFp32, results[k])));
      node.outputs.push_back(values_.back());
    }
    case_.module.source_nodes.push_back({name, std::string(node.op->name)});
    graph_->add_node(std::move(node));
  }

  ir::ValueId second_operand(const std::string& name, const Shape& shape) {
    if (random_.chance(0.2))
      return graph_->add_constant(name + "_c", *Tensor::zeros(DType::kFp32, {1, 1, 1, 1}));
    std::vector<ir::ValueId> same;
    for (const ir::ValueId value : values_)
      if (*graph_->value(value).type.shape == shape) same.push_back(value);
    return random_.pick(same);
  }

  void add_outputs() {
    for (const ir::ValueId value : values_) {
      const bool is_input = graph_->value(value).kind == ir::ValueKind::kInput;
      if ((!is_input && graph_->uses(value).empty()) || random_.chance(0.1))
        graph_->outputs.push_back(value);
    }
  }

  // No path leaves the nodes and comes back.
  bool is_convex(const std::set<std::size_t>& nodes) const {
    std::set<std::size_t> outside;  // reached from the nodes, not one of them
    for (std::size_t i = 0; i < graph_->nodes().size(); ++i) {
      for (const ir::ValueId value : graph_->nodes()[i]->inputs) {
        const ir::Node* producer = graph_->producer(value);
        if (producer == nullptr) continue;
        const std::size_t from = graph_->position_of(producer->id);
        if (nodes.contains(i) && outside.contains(from)) return false;
        if (!nodes.contains(i) && (nodes.contains(from) || outside.contains(from)))
          outside.insert(i);
      }
    }
    return true;
  }

  void add_cover(const std::set<std::size_t>& nodes) {
    ir::Cover cover;
    cover.id = static_cast<std::uint32_t>(case_.covers.size());
    cover.pattern = "random";
    std::set<ir::ValueId> inside;
    for (const std::size_t i : nodes) {
      const ir::Node& node = *graph_->nodes()[i];
      cover.nodes.push_back(node.id);
      for (const ir::ValueId value : node.inputs)
        if (!inside.contains(value) && std::ranges::find(cover.inputs, value) == cover.inputs.end())
          cover.inputs.push_back(value);
      inside.insert(node.outputs.begin(), node.outputs.end());
    }
    for (const ir::ValueId value : inside) {
      const auto uses = graph_->uses(value);
      const auto is_outside = [&](const ir::Graph::Use& use) {
        return !nodes.contains(graph_->position_of(use.node->id));
      };
      if (graph_->is_output(value) || std::ranges::any_of(uses, is_outside))
        cover.outputs.push_back(value);
    }
    case_.covers.push_back(std::move(cover));
  }

  void offer(const std::string& name, const ir::WorkItem& item, std::int64_t most,
             std::int64_t least, double dearest_us) {
    const std::int64_t count = random_.integer(least, most);
    for (std::int64_t k = 0; k < count; ++k) {
      auto& device =
          *devices_[k == 0 && least > 0 && random_.chance(0.5) ? 0
                                                               : random_.index(devices_.size())];
      auto& candidate = device.offer(name, random_.real(0, dearest_us), {}, form());
      for (const ir::ValueId value : item.inputs) {
        const bool baked =
            graph_->value(value).kind == ir::ValueKind::kConstant && random_.chance(0.5);
        candidate.inputs.push_back(baked ? std::nullopt : std::optional(form()));
      }
      candidate.outputs.clear();
      for (std::size_t i = 0; i < item.outputs.size(); ++i) candidate.outputs.push_back(form());
      if (item.nodes.size() == 1 && random_.chance(0.2)) candidate.options["view"] = 1;
    }
  }

  // The interface's form half of the time, so that most cases have a plan.
  TensorForm form() { return random_.chance(0.5) ? forms_.front() : random_.pick(forms_); }

  testing::Random random_;
  RandomCase& case_;
  std::vector<TensorForm> forms_;
  ir::Graph* graph_ = nullptr;
  std::vector<ir::ValueId> values_;
  std::vector<testing::FakeDevice*> devices_;
};

}  // namespace

RandomCase::RandomCase(std::uint64_t seed) {
  Generator generator(seed, *this);
  generator.graph();
  generator.devices();
  generator.covers();
  generator.offers();
  pricer = std::make_unique<Pricer>(devices.target(), table, 1, point);
  conversions = std::make_unique<Conversions>(graph(), devices.target(), *pricer);
  auto found = enumerate_choices(module, graph(), covers, devices.target(), {}, {}, *pricer);
  if (!found)
    ADD_FAILURE() << found.error().to_string();
  else
    choices = *std::move(found);
}

}  // namespace tessera::plan
