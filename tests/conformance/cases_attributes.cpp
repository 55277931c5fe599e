// Attributes and operand shapes beside the usual ones.

#include "conformance/case_text.h"

namespace tessera::testing {
namespace {

const std::string kImage = "input %x : fp32[n, 8, 6, 5]";
const std::string kMatrix = "input %x : fp32[n, 10]";

void add_windows(std::vector<OpCase>& cases) {
  const auto pool = [&](const std::string& name, const std::string& attributes) {
    for (const char* op : {"MaxPool", "AveragePool"})
      cases.push_back({std::string(op) + "/" + name,
                       kImage + " %y = " + op + "(%x) {" + attributes + "} output %y"});
  };
  pool("ceil", "kernel_shape = [3, 2], strides = [2, 2], ceil_mode = 1");
  pool("dilated", "kernel_shape = [2, 2], dilations = [2, 2]");
  pool("same upper", "kernel_shape = [3, 3], strides = [2, 2], auto_pad = \"SAME_UPPER\"");
  pool("same lower", "kernel_shape = [2, 2], auto_pad = \"SAME_LOWER\"");
  cases.push_back({"AveragePool/padding counts",
                   kImage + " %y = AveragePool(%x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], "
                            "count_include_pad = 1} output %y"});
  cases.push_back({"MaxPool/indices", kImage + " %y, %i = MaxPool(%x) {kernel_shape = [2, 2]} "
                                               "output %y output %i"});
  const auto conv = [&](const std::string& name, const std::string& attributes) {
    cases.push_back({"Conv/" + name, kImage + constant("w", {4, 8, 3, 3}) + "%y = Conv(%x, %w) {" +
                                         attributes + "} output %y"});
  };
  conv("same upper", "auto_pad = \"SAME_UPPER\", strides = [2, 2]");
  conv("same lower", "auto_pad = \"SAME_LOWER\"");
  conv("uneven pads", "pads = [0, 2, 1, 0]");
  const auto transposed = [&](const std::string& name, const std::string& attributes) {
    cases.push_back({"ConvTranspose/" + name, kImage + constant("w", {8, 2, 3, 3}) +
                                                  constant("b", {4}) +
                                                  "%y = ConvTranspose(%x, %w, %b) {group = 2, " +
                                                  attributes + "} output %y"});
  };
  transposed("grouped", "pads = [1, 0, 1, 0]");
  transposed("output padding", "strides = [2, 2], output_padding = [1, 0]");
  transposed("dilated", "dilations = [2, 1]");
}

void add_reductions(std::vector<OpCase>& cases) {
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceSum"}) {
    cases.push_back(
        {std::string(op) + "/without keepdims",
         kImage + ints("a", {1, -1}) + "%y = " + op + "(%x, %a) {keepdims = 0} output %y"});
    cases.push_back({std::string(op) + "/all axes", kImage + " %y = " + op + "(%x) output %y"});
    cases.push_back({std::string(op) + "/no axes, nothing done",
                     kImage + " %y = " + op + "(%x) {noop_with_empty_axes = 1} output %y"});
  }
  cases.push_back({"ArgMax/last index", kImage + " %y = ArgMax(%x) {axis = -1, keepdims = 0, "
                                                 "select_last_index = 1} output %y"});
  cases.push_back({"CumSum/backwards without itself",
                   kMatrix + scalar("a", "int64", "-1") +
                       "%y = CumSum(%x, %a) {exclusive = 1, reverse = 1} output %y"});
  cases.push_back({"TopK/smallest of axis 0",
                   "input %x : fp32[6, n]" + ints("k", {2}) +
                       "%y, %i = TopK(%x, %k) {axis = 0, largest = 0} output %y output %i"});
}

void add_resizes(std::vector<OpCase>& cases) {
  const auto resize = [&](const std::string& name, const std::string& attributes) {
    cases.push_back({"Resize/" + name, kImage +
                                           " const %s : fp32[4] dense [1, 1, 1.5, 2] "
                                           "%y = Resize(%x, _, %s) {" +
                                           attributes + "} output %y"});
  };
  for (const char* mode :
       {"align_corners", "asymmetric", "half_pixel_symmetric", "pytorch_half_pixel"}) {
    const std::string text = std::string("coordinate_transformation_mode = \"") + mode + "\"";
    resize(std::string("linear, ") + mode, "mode = \"linear\", " + text);
    resize(std::string("nearest, ") + mode, "mode = \"nearest\", " + text);
  }
  for (const char* mode : {"ceil", "floor", "round_prefer_ceil"})
    resize(std::string("nearest, ") + mode, std::string("nearest_mode = \"") + mode + "\"");
  resize("antialias", "mode = \"linear\", antialias = 1");
  cases.push_back({"Resize/to sizes", kImage + ints("s", {3, 8, 4, 7}) +
                                          "%y = Resize(%x, _, _, %s) {mode = \"linear\"} "
                                          "output %y"});
}

void add_movement(std::vector<OpCase>& cases) {
  for (const char* mode : {"edge", "wrap"})
    cases.push_back({std::string("Pad/") + mode, kImage + ints("p", {0, 0, 1, 2, 0, 0, 1, 0}) +
                                                     "%y = Pad(%x, %p) {mode = \"" + mode +
                                                     "\"} output %y"});
  cases.push_back({"Pad/crops", kImage + ints("p", {0, 0, -1, 2, 0, 0, 1, -2}) +
                                    scalar("v", "fp32", "0.5") + "%y = Pad(%x, %p, %v) output %y"});
  cases.push_back({"Slice/backwards", kImage + ints("a", {-1}) + ints("b", {-100}) +
                                          ints("c", {2}) + ints("d", {-2}) +
                                          "%y = Slice(%x, %a, %b, %c, %d) output %y"});
  cases.push_back({"Split/in two", kImage + " %y, %z = Split(%x) {axis = 2, num_outputs = 2} "
                                            "output %y output %z"});
  cases.push_back({"DepthToSpace/CRD",
                   kImage + " %y = DepthToSpace(%x) {blocksize = 2, mode = \"CRD\"} output %y"});
  for (const char* fold : {"add", "mul", "min", "max"})
    cases.push_back({std::string("ScatterND/") + fold,
                     "input %x : fp32[4, 5] const %i : int64[2, 1] dense [3, 3] input %u : "
                     "fp32[2, 5] %y = ScatterND(%x, %i, %u) {reduction = \"" +
                         std::string(fold) + "\"} output %y"});
  cases.push_back({"OneHot/axis 0",
                   "input %i : int64[n] const %d : int64[] dense [4] const %v : fp32[2] "
                   "dense [0, 1] %y = OneHot(%i, %d, %v) {axis = 0} output %y"});
  cases.push_back({"Transpose/of a matrix", kMatrix + " %y = Transpose(%x) output %y"});
}

void add_products(std::vector<OpCase>& cases) {
  cases.push_back({"MatMul/integers",
                   "input %x : int32[n, 4] input %z : int32[4, 3] %y = MatMul(%x, %z) output %y"});
  cases.push_back({"MatMul/broadcast batch",
                   "input %x : fp32[2, 1, 4, 5] input %z : fp32[3, 5, 6] %y = MatMul(%x, %z) "
                   "output %y"});
  cases.push_back({"Gemm/transposed, column bias",
                   "input %x : fp32[10, 4]" + constant("w", {10, 6}) + constant("b", {4, 1}) +
                       "%y = Gemm(%x, %w, %b) {transA = 1} output %y"});
  cases.push_back({"Gelu/tanh", kImage + " %y = Gelu(%x) {approximate = \"tanh\"} output %y"});
  cases.push_back({"Clip/without limits", kImage + " %y = Clip(%x) output %y"});
  cases.push_back({"Pow/square", kImage + scalar("e", "fp32", "2") + "%y = Pow(%x, %e) output %y"});
  cases.push_back({"empty", "input %x : fp32[0, 5] %y = Relu(%x) output %y"});
  cases.push_back({"empty/reduced",
                   "input %x : fp32[0, 5]" + ints("a", {1}) + "%y = ReduceSum(%x, %a) output %y"});
  cases.push_back({"empty/product",
                   "input %x : fp32[3, 0] input %z : fp32[0, 4] %y = MatMul(%x, %z) output %y"});
}

}  // namespace

void add_attribute_cases(std::vector<OpCase>& cases) {
  add_windows(cases);
  add_reductions(cases);
  add_resizes(cases);
  add_movement(cases);
  add_products(cases);
}

}  // namespace tessera::testing
