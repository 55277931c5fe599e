// Models of the shared cases, changed at random: an error or a module, never a crash. Upgrades,
// inference and the verifier see what no exporter writes. Runs under asan in CI.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>

#include "import/import.h"
#include "testing/onnx_builder.h"
#include "testing/shared_data.h"
#include "testing/temp_dir.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxModelBytes = 16384;  // larger ones add time, not kinds
constexpr int kRounds = 12;                    // changed models for each case

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void change(onnx::ModelProto& model) {
    if (pick(4) == 0 && model.opset_import_size() > 0) {
      model.mutable_opset_import(0)->set_version(1 + pick(24));
      return;
    }
    onnx::GraphProto& graph = *model.mutable_graph();
    switch (pick(4)) {
      case 0: return change_tensor(graph);
      case 1: return change_type(graph);
      default: return change_node(graph);
    }
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  void change_tensor(onnx::GraphProto& graph) {
    if (graph.initializer_size() == 0) return;
    auto& tensor = *graph.mutable_initializer(pick(graph.initializer_size()));
    if (pick(3) == 0) return tensor.set_data_type(pick(28));
    if (tensor.dims_size() == 0) return tensor.add_dims(pick(5) - 1);
    if (pick(2) == 0) return tensor.mutable_dims()->RemoveLast();
    tensor.set_dims(pick(tensor.dims_size()), pick(6) - 1);
  }

  void change_type(onnx::GraphProto& graph) {
    if (graph.input_size() == 0) return;
    auto& type =
        *graph.mutable_input(pick(graph.input_size()))->mutable_type()->mutable_tensor_type();
    switch (pick(4)) {
      case 0: return type.set_elem_type(pick(27));
      case 1: return type.clear_shape();
      case 2: return type.mutable_shape()->add_dim()->set_dim_param("more");
      default:
        if (type.shape().dim_size() > 0)
          type.mutable_shape()->mutable_dim(pick(type.shape().dim_size()))->set_dim_value(pick(4));
    }
  }

  void change_node(onnx::GraphProto& graph) {
    if (graph.node_size() == 0) return;
    auto& node = *graph.mutable_node(pick(graph.node_size()));
    switch (pick(5)) {
      case 0:
        if (node.input_size() > 0) node.mutable_input()->RemoveLast();
        return;
      case 1:
        if (node.input_size() > 0) node.set_input(pick(node.input_size()), "");
        return;
      case 2:
        if (node.input_size() > 0) node.add_input(node.input(pick(node.input_size())));
        return;
      case 3: node.add_output(node.name() + "_more" + std::to_string(pick(1000))); return;
      default:
        if (node.attribute_size() > 0)
          change_attribute(*node.mutable_attribute(pick(node.attribute_size())));
    }
  }

  void change_attribute(onnx::AttributeProto& attribute) {
    if (attribute.has_g()) return change(attribute);
    switch (pick(5)) {
      case 0: return attribute.set_i(pick(40) - 20);
      case 1: return attribute.add_ints(pick(40) - 20);
      case 2: return attribute.mutable_ints()->Clear();
      case 3: return attribute.set_s("nonsense");
      default: return attribute.set_type(pick(17));
    }
  }

  void change(onnx::AttributeProto& body) {
    auto& graph = *body.mutable_g();
    switch (pick(3)) {
      case 0:
        if (graph.output_size() > 0) graph.mutable_output()->RemoveLast();
        return;
      case 1:
        if (graph.input_size() > 0) graph.mutable_input()->RemoveLast();
        return;
      default: return change_node(graph);
    }
  }

  std::mt19937 random_;
};

TEST(MutatedModels, NeverCrash) {
  TESSERA_SHARED_OR_SKIP(cases, "cases");
  std::set<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(cases)) paths.insert(entry.path() / "model.onnx");
  unsigned seed = 0;
  std::size_t loaded = 0;
  std::size_t refused = 0;
  for (const fs::path& path : paths) {
    const std::string bytes = testing::read_bytes(path);
    onnx::ModelProto original;
    if (bytes.size() > kMaxModelBytes || !original.ParseFromString(bytes)) continue;
    for (int round = 0; round < kRounds; ++round) {
      SCOPED_TRACE(path.string() + " with seed " + std::to_string(++seed));
      onnx::ModelProto changed = original;
      Mutator mutator(seed);
      for (int change = 0; change <= round / 4; ++change) mutator.change(changed);
      const auto module =
          importer::import_bytes(testing::bytes_of(changed.SerializeAsString()), nullptr);
      ++(module ? loaded : refused);
      if (!module) {
        EXPECT_FALSE(module.error().message.empty());
      }
    }
  }
  EXPECT_GT(loaded, 0U);
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace tessera
