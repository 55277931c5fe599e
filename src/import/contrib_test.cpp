// Operators of com.microsoft in a file: what they become, at sizes that nobody knows, and refusals
// that name the node.

#include <gtest/gtest.h>

#include "testing/import_model.h"

namespace tessera::importer {
namespace {

using tessera::testing::describe_nodes;
using tessera::testing::import_error;
using tessera::testing::import_model;
using tessera::testing::kFloat;
using tessera::testing::OnnxModel;
using tessera::testing::type_of;

tessera::testing::OnnxNode contrib_node(OnnxModel& model, const std::string& op,
                                        const std::vector<std::string>& inputs) {
  model.opset_import("com.microsoft", 1);
  return model.node(op, inputs, {"y"}, "a", "com.microsoft");
}

TEST(ContribImport, BecomesStandardOperatorsAtUnknownSizes) {
  OnnxModel model;
  model.input("x", kFloat, {"batch", "length", 8});
  model.input("skip", kFloat, {"batch", "length", 8});
  model.input("gamma", kFloat, {8});
  contrib_node(model, "SkipSimplifiedLayerNormalization", {"x", "skip", "gamma"});
  model.output("y", kFloat, {"batch", "length", 8});
  const ir::Module module = import_model(model);
  const ir::Graph& graph = module.methods.front().graph;
  EXPECT_EQ(describe_nodes(graph),
            (std::vector<std::string>{"Add(x, skip) -> a/Add_out",
                                      "RMSNormalization(a/Add_out, gamma) -> y"}));
  EXPECT_EQ(type_of(graph, "y"), "fp32[batch, length, 8]");
}

TEST(ContribImport, RefusalsNameTheNodeAndTheAttribute) {
  OnnxModel model;
  model.input("x", kFloat, {1, 2, 4});
  model.input("w", kFloat, {4, 12});
  contrib_node(model, "Attention", {"x", "w"}).integer("num_heads", 2).integer("do_rotary", 1);
  model.output("y", kFloat, {1, 2, 4});
  EXPECT_EQ(import_error(model),
            "node 'a' (com.microsoft::Attention): attribute 'do_rotary': expected 0, found 1");
}

TEST(ContribImport, SaysWhatItMustKnow) {
  OnnxModel model;
  model.input("x", kFloat, {"batch", "length", 8});
  model.input("at", tessera::testing::kInt64, {1});
  model.input("cosine", kFloat, {16, "half"});
  contrib_node(model, "RotaryEmbedding", {"x", "at", "cosine", "cosine"});
  model.output("y", kFloat, {"batch", "length", 8});
  EXPECT_EQ(import_error(model),
            "node 'a' (com.microsoft::RotaryEmbedding): input 'cos_cache': expected a known size "
            "of axis 1, found half");
}

TEST(ContribImport, SimplifiedLayerNormalizationStandsInTheDefaultDomainToo) {
  OnnxModel model;
  model.input("x", kFloat, {"n", 4});
  model.input("scale", kFloat, {4});
  model.node("SimplifiedLayerNormalization", {"x", "scale"}, {"y"}, "a");
  model.output("y", kFloat, {"n", 4});
  const ir::Module module = import_model(model);
  EXPECT_EQ(describe_nodes(module.methods.front().graph),
            (std::vector<std::string>{"RMSNormalization(x, scale) -> y"}));
}

}  // namespace
}  // namespace tessera::importer
