#include "sessions/session_models.h"

#include "testing/onnx_builder.h"
#include "testing/random.h"

namespace tessera::testing {
namespace {

// Convolutions with epilogues, pooling, a classifier.
SessionModel convolutions() {
  OnnxModel model;
  Random random(1);
  model.input("x", kFloat, {"n", 4, 16, 16});
  model.floats("w", {16, 4, 3, 3}, random.floats(std::size_t{16} * 36));
  model.floats("depthwise", {16, 1, 3, 3}, random.floats(std::size_t{16} * 9));
  model.floats("classes", {16, 5}, random.floats(std::size_t{16} * 5));
  model.node("Conv", {"x", "w"}, {"c"}).ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c"}, {"r"});
  model.node("Conv", {"r", "depthwise"}, {"d"}).integer("group", 16).ints("pads", {1, 1, 1, 1});
  model.node("Add", {"d", "r"}, {"s"});
  model.node("MaxPool", {"s"}, {"m"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  model.node("AveragePool", {"m"}, {"v"}).ints("kernel_shape", {2, 2});
  model.node("GlobalAveragePool", {"v"}, {"g"});
  model.node("Flatten", {"g"}, {"f"});
  model.node("MatMul", {"f", "classes"}, {"p"});
  model.node("Softmax", {"p"}, {"y"});
  model.output("y");
  return {"convolutions", model.serialize(), {4, 16, 16}};
}

// Separable convolutions between one of few channels and a transposed one: own code throughout.
SessionModel separable() {
  OnnxModel model;
  Random random(4);
  model.input("x", kFloat, {"n", 3, 16, 16});
  model.floats("first", {16, 3, 3, 3}, random.floats(std::size_t{16} * 27));
  model.floats("wide", {64, 16, 1, 1}, random.floats(std::size_t{64} * 16));
  model.floats("depthwise", {64, 1, 5, 5}, random.floats(std::size_t{64} * 25));
  model.floats("narrow", {16, 64, 1, 1}, random.floats(std::size_t{16} * 64));
  model.floats("up", {16, 4, 2, 2}, random.floats(std::size_t{16} * 16));
  model.node("Conv", {"x", "first"}, {"f"}).ints("pads", {1, 1, 1, 1});
  model.node("Conv", {"f", "wide"}, {"w"});
  model.node("Relu", {"w"}, {"r"});
  model.node("Conv", {"r", "depthwise"}, {"d"}).integer("group", 64).ints("pads", {2, 2, 2, 2});
  model.node("Relu", {"d"}, {"e"});
  model.node("Conv", {"e", "narrow"}, {"s"});
  model.node("ConvTranspose", {"s", "up"}, {"y"}).ints("strides", {2, 2});
  model.output("y");
  return {"separable", model.serialize(), {3, 16, 16}};
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

// A loop that carries a state through a product, as often as x has rows; no rounding grows on its
// way through it.
SessionModel loop() {
  OnnxModel model;
  Random random(3);
  model.input("x", kFloat, {"n", 96});
  model.floats("w", {96, 96}, random.floats(std::size_t{96} * 96, -0.15, 0.15));
  model.node("Shape", {"x"}, {"sizes"}).integer("start", 0).integer("end", 1);
  model.ints("scalar", {0}, {});
  model.node("Reshape", {"sizes", "scalar"}, {"trips"});
  auto node = model.node("Loop", {"trips", "", "x"}, {"y"});
  auto& body = node.graph("body", "b");
  set_value(*body.add_input(), "i", kInt64, {});
  set_value(*body.add_input(), "go", kBool, {});
  set_value(*body.add_input(), "h", kFloat, {"n", 96});
  OnnxNode(body, "MatMul", {"h", "w"}, {"p"});
  OnnxNode(body, "Tanh", {"p"}, {"next"});
  OnnxNode(body, "Identity", {"go"}, {"on"});
  body.add_output()->set_name("on");
  body.add_output()->set_name("next");
  model.output("y");
  return {"loop", model.serialize(), {96}};
}

// By the sign of a sum either a product, or a scan that adds up the rows.
SessionModel branches() {
  OnnxModel model;
  Random random(6);
  model.input("x", kFloat, {"n", 64});
  model.floats("w", {64, 64}, random.floats(std::size_t{64} * 64));
  model.floats("zero", {}, {0});
  model.floats("zeros", {64}, std::vector<float>(64, 0.0F));
  model.node("ReduceSum", {"x"}, {"sum"}).integer("keepdims", 0);
  model.node("Greater", {"sum", "zero"}, {"positive"});
  auto node = model.node("If", {"positive"}, {"y"});
  auto& then = node.graph("then_branch", "t");
  OnnxNode(then, "MatMul", {"x", "w"}, {"p"});
  OnnxNode(then, "Sigmoid", {"p"}, {"r"});
  then.add_output()->set_name("r");
  auto& otherwise = node.graph("else_branch", "e");
  OnnxNode scan(otherwise, "Scan", {"zeros", "x"}, {"last", "sums"});
  scan.integer("num_scan_inputs", 1);
  auto& body = scan.graph("body", "b");
  set_value(*body.add_input(), "state", kFloat, {64});
  set_value(*body.add_input(), "row", kFloat, {64});
  OnnxNode(body, "Add", {"state", "row"}, {"next"});
  OnnxNode(body, "Tanh", {"next"}, {"slice"});
  body.add_output()->set_name("next");
  body.add_output()->set_name("slice");
  otherwise.add_output()->set_name("sums");
  model.output("y");
  return {"branches", model.serialize(), {64}};
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

// Both directions; as many steps as x has rows.
SessionModel recurrent() {
  OnnxModel model;
  Random random(5);
  model.input("x", kFloat, {"n", 4, 16});
  model.floats("w", {2, 128, 16}, random.floats(std::size_t{2} * 128 * 16));
  model.floats("r", {2, 128, 32}, random.floats(std::size_t{2} * 128 * 32));
  model.node("LSTM", {"x", "w", "r"}, {"y"})
      .integer("hidden_size", 32)
      .text("direction", "bidirectional");
  model.output("y");
  return {"recurrent", model.serialize(), {4, 16}};
}

// Four heads over 24 items, between products and a normalisation.
SessionModel attention() {
  OnnxModel model(23, 10);
  Random random(7);
  model.input("x", kFloat, {"n", 24, 32});
  for (const char* name : {"q", "k", "v"}) {
    const std::string weights = std::string("w") + name;
    model.floats(weights, {32, 32}, random.floats(std::size_t{32} * 32));
    model.node("MatMul", {"x", weights}, {name});
  }
  model.floats("scale", {32}, random.floats(32));
  model.node("Attention", {"q", "k", "v"}, {"a"})
      .integer("q_num_heads", 4)
      .integer("kv_num_heads", 4);
  model.node("Add", {"a", "x"}, {"s"});
  model.node("LayerNormalization", {"s", "scale"}, {"y"});
  model.output("y");
  return {"attention", model.serialize(), {24, 32}};
}

// A convolution in 8 bits: its operands and its result pass through bytes.
SessionModel quantized() {
  OnnxModel model;
  Random random(8);
  model.input("x", kFloat, {"n", 8, 8, 8});
  model.floats("scale", {}, {1.0F / 64});
  auto& zero = *model.graph().add_initializer();
  zero.set_name("zero");
  zero.set_data_type(onnx::TensorProto::INT8);
  zero.add_int32_data(0);
  auto& weights = *model.graph().add_initializer();
  weights.set_name("w");
  weights.set_data_type(onnx::TensorProto::INT8);
  for (const std::int64_t dim : {16, 8, 3, 3}) weights.add_dims(dim);
  for (int i = 0; i < 16 * 8 * 9; ++i)
    weights.add_int32_data(static_cast<std::int32_t>(random.integer(-100, 100)));
  model.node("QuantizeLinear", {"x", "scale", "zero"}, {"xq"});
  model.node("DequantizeLinear", {"xq", "scale", "zero"}, {"xd"});
  model.node("DequantizeLinear", {"w", "scale", "zero"}, {"wd"});
  model.node("Conv", {"xd", "wd"}, {"c"}).ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c"}, {"r"});
  model.node("QuantizeLinear", {"r", "scale", "zero"}, {"rq"});
  model.node("DequantizeLinear", {"rq", "scale", "zero"}, {"y"});
  model.output("y");
  return {"quantized", model.serialize(), {8, 8, 8}};
}

}  // namespace

std::vector<SessionModel> session_models() {
  return {convolutions(), separable(),  products(false), products(true), loop(),
          branches(),     late_sizes(), recurrent(),     attention(),    quantized()};
}

std::string quick_npu_profile() {
  return R"({"schema": "tessera.device/1.0", "name": "npu", "kind": "simulated",
             "lacks": [{"op": "Erf"}], "launch_us": 0, "sync_us": 0,
             "memory_gb_per_s": 100000, "link": {"gb_per_s": 100000, "latency_us": 0}})";
}

}  // namespace tessera::testing
