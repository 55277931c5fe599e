// Products and convolutions of com.microsoft with what is fused into them.

#include <fmt/format.h>

#include "ops/contrib/expansion.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

// An activation by name with its parameters in the order in which FusedConv lists them.
Result<Operand> activate(Expansion& e, Operand x, DType dtype, std::vector<float> parameters) {
  const std::string name = e.attributes().get_string("activation", "");
  const auto parameter = [&](std::size_t index, float fallback) {
    return index < parameters.size() ? parameters[index] : fallback;
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" ||
      name == "Softsign")
    return e.add(name, {x});
  if (name == "LeakyRelu" || name == "Elu" || name == "ThresholdedRelu")
    return e.add(name, {x},
                 attributes_of({{"alpha", parameter(0, name == "LeakyRelu" ? 0.01F : 1.0F)}}));
  if (name == "HardSigmoid")
    return e.add(name, {x},
                 attributes_of({{"alpha", parameter(0, 0.2F)}, {"beta", parameter(1, 0.5F)}}));
  if (name == "Clip" && parameters.size() == 2)
    return e.add(name, {x, e.number(dtype, static_cast<double>(parameters[0])),
                        e.number(dtype, static_cast<double>(parameters[1]))});
  return contrib::refuse_attribute(
      "activation", fmt::format("expected Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid, Elu, "
                                "ThresholdedRelu, Softplus, Softsign or Clip with its bounds, "
                                "found '{}' with {} parameters",
                                name, parameters.size()));
}

// activation(Conv(X, W, B) + Z); X, Z and Y with channels last or not.
Result<Operand> convolve(Expansion& e, bool channels_last) {
  TESSERA_ASSIGN(const DType dtype, e.dtype(0));
  std::int64_t rank = 0;
  if (channels_last) {
    TESSERA_ASSIGN(rank, e.rank(0));
  }
  const Operand x = channels_last ? e.to_channels_first(e.in(0), rank) : e.in(0);
  Operand y = e.add("Conv", {x, e.in(1), e.in(2)},
                    e.keep({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (e.has(3)) y = e.add("Add", {y, channels_last ? e.to_channels_first(e.in(3), rank) : e.in(3)});
  TESSERA_ASSIGN(y, activate(e, y, dtype, e.attributes().get_floats("activation_params")));
  return channels_last ? e.to_channels_last(y, rank) : y;
}

template <bool channels_last>
Status conv(Expansion& e) {
  TESSERA_ASSIGN(const Operand y, convolve(e, channels_last));
  return e.replace({y});
}

Status gemm(Expansion& e) {
  TESSERA_ASSIGN(const DType dtype, e.dtype(0));
  const Operand y =
      e.add("Gemm", {e.in(0), e.in(1), e.in(2)}, e.keep({"alpha", "beta", "transA", "transB"}));
  const std::string name = e.attributes().get_string("activation", "");
  std::vector<float> parameters;
  // Bounds of a Clip are alpha and beta, as of every activation with two parameters.
  for (const char* parameter : {"activation_alpha", "activation_beta"}) {
    if (!e.attributes().has(parameter)) break;
    parameters.push_back(e.float_of(parameter, 0));
  }
  if (e.float_of("activation_gamma", 0) != 0)
    return contrib::refuse_attribute(
        "activation_gamma", fmt::format("expected 0 beside the activation '{}', found {}", name,
                                        e.float_of("activation_gamma", 0)));
  TESSERA_ASSIGN(const Operand activated, activate(e, y, dtype, std::move(parameters)));
  return e.replace({activated});
}

// A matrix operand as its flags turn it: the batch axes before the first one, then the last two
// exchanged. A vector stays.
Result<Operand> turned(Expansion& e, std::size_t index, bool last_two, bool batch) {
  if (!last_two && !batch) return e.in(index);
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(index));
  if (rank < 2) return e.in(index);
  std::vector<std::int64_t> perm;
  for (std::int64_t axis = 0; axis < rank; ++axis) perm.push_back(axis);
  if (batch && rank > 2) {
    for (std::int64_t axis = 0; axis + 2 < rank; ++axis)
      perm[static_cast<std::size_t>(axis)] = axis + 1;
    perm[static_cast<std::size_t>(rank - 2)] = 0;
  }
  if (last_two)
    std::swap(perm[static_cast<std::size_t>(rank - 1)], perm[static_cast<std::size_t>(rank - 2)]);
  return e.transpose(e.in(index), std::move(perm));
}

Status matmul(Expansion& e) {
  TESSERA_ASSIGN(const DType dtype, e.dtype(0));
  TESSERA_ASSIGN(const Operand a,
                 turned(e, 0, e.int_of("transA", 0) != 0, e.int_of("transBatchA", 0) != 0));
  TESSERA_ASSIGN(const Operand b,
                 turned(e, 1, e.int_of("transB", 0) != 0, e.int_of("transBatchB", 0) != 0));
  const Operand product = e.add("MatMul", {a, b});
  const float alpha = e.float_of("alpha", 1);
  if (alpha == 1.0F) return e.replace({product});
  return e.replace({e.add("Mul", {product, e.number(dtype, static_cast<double>(alpha))})});
}

std::vector<FormalAttr> conv_attributes(bool with_activation) {
  std::vector<FormalAttr> attributes = {
      attr("auto_pad", AttrType::kString), attr("dilations", AttrType::kInts),
      attr("group", AttrType::kInt),       attr("kernel_shape", AttrType::kInts),
      attr("pads", AttrType::kInts),       attr("strides", AttrType::kInts)};
  if (with_activation) {
    attributes.push_back(attr("activation", AttrType::kString));
    attributes.push_back(attr("activation_params", AttrType::kFloats));
  }
  return attributes;
}

std::vector<FormalAttr> gemm_attributes() {
  return {attr("activation", AttrType::kString),
          attr("activation_alpha", AttrType::kFloat),
          attr("activation_beta", AttrType::kFloat),
          attr("activation_gamma", AttrType::kFloat),
          attr("alpha", AttrType::kFloat),
          attr("beta", AttrType::kFloat),
          attr("transA", AttrType::kInt),
          attr("transB", AttrType::kInt)};
}

}  // namespace

std::vector<OpSchema> contrib_fused_ops() {
  const std::vector<TypeVariable> floats = {{"T", kFloatTypes}};
  const std::vector<FormalParam> y = {required("Y", "T")};
  const std::vector<FormalParam> conv_inputs = {required("X", "T"), required("W", "T"),
                                                optional("B", "T")};
  std::vector<FormalParam> fused_inputs = conv_inputs;
  fused_inputs.push_back(optional("Z", "T"));
  const std::vector<FormalParam> matrices = {required("A", "T"), required("B", "T")};
  const FormalAttr alpha = attr("alpha", AttrType::kFloat);
  const FormalAttr trans_a = attr("transA", AttrType::kInt);
  const FormalAttr trans_b = attr("transB", AttrType::kInt);
  return {
      contrib::expanded_op("FusedConv", fused_inputs, y, conv_attributes(true), floats,
                           contrib::expand<conv<false>>),
      contrib::expanded_op("NhwcFusedConv", fused_inputs, y, conv_attributes(true), floats,
                           contrib::expand<conv<true>>),
      contrib::expanded_op("NhwcConv", conv_inputs, y, conv_attributes(false), floats,
                           contrib::expand<conv<true>>),
      contrib::expanded_op("FusedGemm",
                           {required("A", "T"), required("B", "T"), optional("C", "T")}, y,
                           gemm_attributes(), floats, contrib::expand<gemm>),
      contrib::expanded_op("FusedMatMul", matrices, y,
                           {alpha, trans_a, trans_b, attr("transBatchA", AttrType::kInt),
                            attr("transBatchB", AttrType::kInt)},
                           floats, contrib::expand<matmul>),
      contrib::expanded_op("TransposeMatMul", matrices, y, {alpha, trans_a, trans_b}, floats,
                           contrib::expand<matmul>),
  };
}

}  // namespace tessera::ops
