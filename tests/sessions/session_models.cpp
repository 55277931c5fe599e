#include "sessions/session_models.h"

#include "testing/onnx_builder.h"
#include "testing/random.h"

namespace tessera::testing {
namespace {

// Convolutions with epilogues, pooling, a classifier.
SessionModel convolutions() {
  OnnxModel model;
  Random random(1);
  model.input("x", kFloat, {"n", 4, 10, 10});
  model.floats("w", {16, 4, 3, 3}, random.floats(std::size_t{16} * 36));
  model.floats("depthwise", {16, 1, 3, 3}, random.floats(std::size_t{16} * 9));
  model.floats("classes", {16, 5}, random.floats(std::size_t{16} * 5));
  model.node("Conv", {"x", "w"}, {"c"}).ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c"}, {"r"});
  model.node("Conv", {"r", "depthwise"}, {"d"}).integer("group", 16).ints("pads", {1, 1, 1, 1});
  model.node("Add", {"d", "r"}, {"s"});
  model.node("MaxPool", {"s"}, {"m"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  model.node("GlobalAveragePool", {"m"}, {"g"});
  model.node("Flatten", {"g"}, {"f"});
  model.node("MatMul", {"f", "classes"}, {"p"});
  model.node("Softmax", {"p"}, {"y"});
  model.output("y");
  return {"convolutions", model.serialize(), {4, 10, 10}};
}

// Products, reductions and elementwise groups; part of it on a simulated device.
SessionModel products(bool with_npu) {
  OnnxModel model;
  Random random(2);
  model.input("x", kFloat, {"n", 24});
  model.floats("w", {24, 32}, random.floats(std::size_t{24} * 32));
  model.floats("v", {32, 24}, random.floats(std::size_t{32} * 24));
  model.node("MatMul", {"x", "w"}, {"p"});
  model.node("Erf", {"p"}, {"e"});
  model.node("Mul", {"p", "e"}, {"g"});
  model.node("MatMul", {"g", "v"}, {"q"});
  model.node("Add", {"q", "x"}, {"s"});
  model.node("Transpose", {"s"}, {"t"}).ints("perm", {1, 0});
  model.node("Softmax", {"t"}, {"u"}).integer("axis", 0);
  model.node("ReduceMean", {"u"}, {"m"}).ints("axes", {1});
  model.node("Sub", {"u", "m"}, {"y"});
  model.output("y");
  return {with_npu ? "products_with_npu" : "products", model.serialize(), {24}, with_npu};
}

// A loop that carries a state through a product, as often as x has rows.
SessionModel loop() {
  OnnxModel model;
  Random random(3);
  model.input("x", kFloat, {"n", 6});
  model.floats("w", {6, 6}, random.floats(36));
  model.node("Shape", {"x"}, {"sizes"}).integer("start", 0).integer("end", 1);
  model.ints("scalar", {0}, {});
  model.node("Reshape", {"sizes", "scalar"}, {"trips"});
  auto node = model.node("Loop", {"trips", "", "x"}, {"y"});
  auto& body = node.graph("body", "b");
  set_value(*body.add_input(), "i", kInt64, {});
  set_value(*body.add_input(), "go", kBool, {});
  set_value(*body.add_input(), "h", kFloat, {"n", 6});
  OnnxNode(body, "MatMul", {"h", "w"}, {"p"});
  OnnxNode(body, "Tanh", {"p"}, {"next"});
  OnnxNode(body, "Identity", {"go"}, {"on"});
  body.add_output()->set_name("on");
  body.add_output()->set_name("next");
  model.output("y");
  return {"loop", model.serialize(), {6}};
}

// Only the run knows how many elements are left.
SessionModel late_sizes() {
  OnnxModel model;
  model.input("x", kFloat, {"n", 7});
  model.floats("zero", {}, {0});
  model.node("Greater", {"x", "zero"}, {"positive"});
  model.ints("all", {1}, {-1});
  model.node("Reshape", {"positive", "all"}, {"flat"});
  model.node("Compress", {"x", "flat"}, {"kept"});
  model.node("Exp", {"kept"}, {"e"});
  model.node("Add", {"e", "kept"}, {"y"});
  model.output("y");
  return {"late_sizes", model.serialize(), {7}};
}

SessionModel recurrent() {
  OnnxModel model;
  Random random(5);
  model.input("x", kFloat, {"n", 2, 8});
  model.floats("w", {1, 64, 8}, random.floats(std::size_t{64} * 8));
  model.floats("r", {1, 64, 16}, random.floats(std::size_t{64} * 16));
  model.node("LSTM", {"x", "w", "r"}, {"y"}).integer("hidden_size", 16);
  model.output("y");
  return {"recurrent", model.serialize(), {2, 8}};
}

}  // namespace

std::vector<SessionModel> session_models() {
  return {convolutions(), products(false), products(true), loop(), late_sizes(), recurrent()};
}

std::string quick_npu_profile() {
  return R"({"schema": "tessera.device/1.0", "name": "npu", "kind": "simulated",
             "lacks": [{"op": "Erf"}], "launch_us": 0, "sync_us": 0,
             "memory_gb_per_s": 100000, "link": {"gb_per_s": 100000, "latency_us": 0}})";
}

}  // namespace tessera::testing
