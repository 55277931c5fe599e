// Small files that ask for much: what each takes of memory stays within the bound of the importer,
// and what would take more is refused with the reason.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "command/run_command.h"
#include "testing/onnx_builder.h"
#include "testing/sanitizers.h"
#include "testing/temp_dir.h"

namespace tessera {
namespace {

using testing::kFloat;
using testing::OnnxModel;
using testing::OnnxNode;

OnnxModel relu_model() {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.node("Relu", {"x"}, {"y"}, "relu");
  model.output("y", kFloat, {4});
  return model;
}

// A model and so many empty messages in field `field` of its graph.
std::string flood(int field, int count) {
  OnnxModel model = relu_model();
  std::string bytes = model.proto().graph().SerializeAsString();
  const unsigned tag = static_cast<unsigned>(field) << 3 | 2;
  std::string empty;
  if (tag >= 0x80) empty += static_cast<char>(tag | 0x80);
  empty += static_cast<char>(tag >= 0x80 ? tag >> 7 : tag);
  empty += '\0';
  for (int i = 0; i < count; ++i) bytes += empty;
  model.proto().clear_graph();
  std::string whole = model.proto().SerializeAsString();
  whole += '\x3a';  // the graph
  for (std::size_t size = bytes.size();; size >>= 7) {
    whole += static_cast<char>(size < 0x80 ? size : (size & 0x7f) | 0x80);
    if (size < 0x80) break;
  }
  return whole + bytes;
}

std::string chain(int nodes, const testing::OnnxDims& dims) {
  OnnxModel model;
  model.input("0", kFloat, dims);
  for (int i = 0; i < nodes; ++i) model.node("Relu", {std::to_string(i)}, {std::to_string(i + 1)});
  model.output(std::to_string(nodes));
  return model.serialize();
}

// Each function calls the one before twice.
std::string function_bomb(int depth) {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.opset_import("local", 1);
  OnnxNode(model.function("local", "f0", {"a"}, {"b"}), "Relu", {"a"}, {"b"});
  for (int level = 1; level < depth; ++level) {
    auto& function = model.function("local", "f" + std::to_string(level), {"a"}, {"b"});
    auto& import = *function.add_opset_import();
    import.set_domain("local");
    import.set_version(1);
    const std::string callee = "f" + std::to_string(level - 1);
    OnnxNode(function, callee, {"a"}, {"m"}, "", "local");
    OnnxNode(function, callee, {"m"}, {"b"}, "", "local");
  }
  model.node("f" + std::to_string(depth - 1), {"x"}, {"y"}, "", "local");
  model.output("y");
  return model.serialize();
}

// A function with a constant of a megabyte, called often: the constant is there once.
std::string shared_constant(int calls) {
  OnnxModel model;
  model.input("0", kFloat, {250'000});
  model.opset_import("local", 1);
  auto& function = model.function("local", "f", {"a"}, {"b"});
  auto& tensor = OnnxNode(function, "Constant", {}, {"c"}).tensor("value");
  testing::set_floats(tensor, "c", {250'000}, {});
  tensor.set_raw_data(std::string(1'000'000, '\0'));
  OnnxNode(function, "Add", {"a", "c"}, {"b"});
  for (int i = 0; i < calls; ++i)
    model.node("f", {std::to_string(i)}, {std::to_string(i + 1)}, "", "local");
  model.output(std::to_string(calls));
  return model.serialize();
}

std::string wide_sparse() {
  OnnxModel model;
  auto& sparse = *model.graph().add_sparse_initializer();
  testing::set_floats(*sparse.mutable_values(), "w", {1}, {1});
  testing::set_ints(*sparse.mutable_indices(), "", {1}, {5});
  sparse.add_dims(250'000'000);
  model.node("Relu", {"w"}, {"y"});
  model.output("y");
  return model.serialize();
}

// Sums of sizes that grow with each node.
std::string growing_sizes(int nodes) {
  OnnxModel model;
  std::vector<std::string> inputs;
  for (int i = 0; i < 30; ++i) {
    inputs.push_back("i" + std::to_string(i));
    const std::string name = "size" + std::to_string(i);
    testing::set_value(*model.graph().add_input(), inputs.back(), kFloat, {name.c_str()});
  }
  model.node("Concat", inputs, {"c0"}).integer("axis", 0);
  for (int i = 0; i < nodes; ++i)
    model
        .node("Concat", {"c" + std::to_string(i), "i" + std::to_string(i % 30)},
              {"c" + std::to_string(i + 1)})
        .integer("axis", 0);
  model.output("c" + std::to_string(nodes));
  return model.serialize();
}

// Loops inside of loops, whose states grow.
std::string nested_loops(int depth) {
  OnnxModel model;
  model.input("x", kFloat, {1});
  model.input("trips", testing::kInt64, {});
  model.input("go", testing::kBool, {});
  onnx::GraphProto* graph = &model.graph();
  std::string state = "x";
  for (int level = 0; level < depth; ++level) {
    const std::string at = std::to_string(level);
    OnnxNode loop(*graph, "Loop", {"trips", "go", state}, {"after" + at}, "loop" + at);
    if (level > 0) {
      OnnxNode(*graph, "Concat", {"after" + at, state}, {"grown" + at}).integer("axis", 0);
      graph->add_output()->set_name("grown" + at);
    }
    auto& body = loop.graph("body", "body" + at);
    for (const std::string name : {"i", "c", "s"}) body.add_input()->set_name(name + at);
    OnnxNode(body, "Identity", {"c" + at}, {"d" + at});
    body.add_output()->set_name("d" + at);
    graph = &body;
    state = "s" + at;
  }
  OnnxNode(*graph, "Concat", {state, state}, {"inner"}).integer("axis", 0);
  graph->add_output()->set_name("inner");
  model.output("after0");
  return model.serialize();
}

// Inputs of `rank` symbols of their own, and an initializer for each.
std::string idle_values(int count, int rank) {
  OnnxModel model = relu_model();
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    auto& input = *model.graph().add_input();
    testing::set_value(input, "i" + name, kFloat, {});
    for (int axis = 0; axis < rank; ++axis)
      input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(
          name + "_" + std::to_string(axis));
    model.ints("w" + name, {}, {i});
  }
  return model.serialize();
}

class HostileModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::kThreadSanitizer || testing::kAddressSanitizer)
      GTEST_SKIP() << "a sanitizer takes memory of its own";
  }

  testing::CommandResult check(const std::string& bytes) {
    const std::filesystem::path path = folder_ / "model.onnx";
    std::ofstream(path, std::ios::binary) << bytes;
    auto result = testing::run_command(
        {"compile", path.string(), "-o", (folder_ / "out").string(), "--stop-after", "infer"});
    constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
    EXPECT_LE(result.peak_rss_bytes, 20 * bytes.size() + 64 * kMiB)
        << bytes.size() << " bytes: " << result.err.substr(0, 300);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
    for (const char* form : {"--json", "--"}) {
      const auto inspected = testing::run_command({"inspect", form, path.string()});
      EXPECT_LE(inspected.peak_rss_bytes, 20 * bytes.size() + 64 * kMiB)
          << bytes.size() << " bytes, inspect " << form << ": " << inspected.err.substr(0, 300);
    }
    return result;
  }

  void expect_refused(const std::string& bytes, const std::string& most) {
    const auto result = check(bytes);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("importing takes more than "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(most), std::string::npos) << result.err;
  }

  void expect_imported(const std::string& bytes) {
    const auto result = check(bytes);
    EXPECT_EQ(result.exit_code, 0) << result.err.substr(0, 600);
    EXPECT_NE(result.err.find("stopped after stage 'infer'; nothing is written"), std::string::npos)
        << result.err.substr(0, 600);
  }

  testing::TempDir folder_;
};

TEST_F(HostileModels, FloodsOfEmptyMessages) {
  constexpr int kCount = 2'000'000;
  expect_refused(flood(1, kCount), " NodeProto messages take most of it");
  expect_refused(flood(5, kCount), " TensorProto messages take most of it");
  expect_refused(flood(11, kCount), " ValueInfoProto messages take most of it");
  expect_refused(flood(15, kCount), " SparseTensorProto messages take most of it");
  check(flood(16, kCount));  // texts of metadata: small enough
}

TEST_F(HostileModels, FunctionsThatDouble) {
  expect_imported(function_bomb(12));
  expect_refused(function_bomb(17), " nodes take most of it");
}

TEST_F(HostileModels, ConstantsOfFunctionsAreThereOnce) {
  expect_imported(shared_constant(2000));
}

TEST_F(HostileModels, SparseTensorsThatAreWide) {
  expect_refused(wide_sparse(), " bytes of constants take most of it");
}

TEST_F(HostileModels, ManySmallNodes) {
  expect_imported(chain(20'000, {4}));
  check(chain(200'000, {4}));
}

TEST_F(HostileModels, ManySizesForEachNode) {
  const testing::OnnxDims dims(60, "n");
  check(chain(50'000, dims));
}

TEST_F(HostileModels, ValuesThatNobodyReads) {
  expect_imported(idle_values(10'000, 2));
  for (const int count : {25'000, 60'000}) {
    for (const int rank : {0, 3}) check(idle_values(count, rank));
  }
}

TEST_F(HostileModels, SizesThatGrow) {
  check(growing_sizes(20'000));
}

// Names of nodes hold those of all calls around them.
TEST_F(HostileModels, LongNamesOfNestedCalls) {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.opset_import("local", 1);
  const std::string name(4000, 'n');
  constexpr int kDepth = 200;
  for (int level = 0; level < kDepth; ++level) {
    auto& function = model.function("local", "f" + std::to_string(level), {"a"}, {"b"});
    auto& import = *function.add_opset_import();
    import.set_domain("local");
    import.set_version(1);
    if (level == 0) {
      OnnxNode(function, "Relu", {"a"}, {"b"}, name);
    } else {
      OnnxNode(function, "f" + std::to_string(level - 1), {"a"}, {"b"}, name, "local");
    }
  }
  model.node("f" + std::to_string(kDepth - 1), {"x"}, {"y"}, name, "local");
  model.output("y");
  expect_refused(model.serialize(), " nodes take most of it");
}

TEST_F(HostileModels, LoopsInLoops) {
  expect_imported(nested_loops(28));
}

}  // namespace
}  // namespace tessera
