// Convolutions and products whose bias stands in an Add behind them.

#include <fmt/format.h>

#include "passes/reassemble/assembler.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

using Judged = std::optional<std::string>;

// ---- Conv, ConvTranspose ------------------------------------------------------------------------

Judged check_conv(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const ir::ValueId bias = match.value("bias");
  const ir::Node& conv = *match.node("conv");
  // A second bias, or a sum with another tensor.
  if (conv.inputs.size() != 2 || constant_of(assembler.view().graph(), bias) == nullptr)
    return std::nullopt;
  if (!same_type(assembler.view().graph(), conv.outputs[0], result))
    return fmt::format("bias {} widens the result of '{}'", assembler.quoted(bias), conv.name);
  if (!assembler.view().is_by_axis(bias, result, 1))
    return fmt::format("bias {} has not one element for each channel", assembler.quoted(bias));
  return std::string();
}

void build_conv(Assembler& assembler, const Match& match, Program& program) {
  const ir::Node& conv = *match.node("conv");
  const ir::Value& bias = assembler.graph().value(match.value("bias"));
  const std::string stem = bias.name;
  const ir::ValueId flat = program.constant(stem, bias.constant.reshaped({bias.constant.numel()}));
  program.finish("", conv.op->name, conv.attributes, {conv.inputs[0], conv.inputs[1], flat});
}

// ---- Gemm ---------------------------------------------------------------------------------------

bool has_rank(const Assembler& assembler, ir::ValueId id, std::size_t rank) {
  const auto& shape = assembler.type(id).shape;
  return shape && shape->size() == rank;
}

Judged check_gemm(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const ir::ValueId bias = match.value("bias");
  const ir::Node& matmul = *match.node("matmul");
  // Stacks of matrices are no Gemm; neither is a sum of two tensors that are computed.
  if (!has_rank(assembler, matmul.inputs[0], 2) || !has_rank(assembler, matmul.inputs[1], 2) ||
      constant_of(assembler.view().graph(), bias) == nullptr)
    return std::nullopt;
  if (!same_type(assembler.view().graph(), matmul.outputs[0], result))
    return fmt::format("bias {} widens the result of '{}'", assembler.quoted(bias), matmul.name);
  return std::string();
}

void build_gemm(Assembler&, const Match& match, Program& program) {
  const ir::Node& matmul = *match.node("matmul");
  ops::Attributes attributes;
  if (match.has_number("alpha")) attributes.set("alpha", static_cast<float>(match.number("alpha")));
  program.finish("", "Gemm", std::move(attributes),
                 {matmul.inputs[0], matmul.inputs[1], match.value("bias")});
}

}  // namespace

void propose_products(Assembler& assembler) {
  const PatternPtr bias = value("bias");
  for (const char* type : {"Conv", "ConvTranspose"}) {
    propose(assembler, {type,
                        "Add",
                        {sum({op(type, {value("x"), value("w")}, "conv"), bias})},
                        check_conv,
                        build_conv});
  }
  const PatternPtr matmul = op("MatMul", {value("a"), value("b")}, "matmul");
  propose(assembler, {"Gemm",
                      "Add",
                      {sum({matmul, bias}), sum({product({matmul, number("alpha")}), bias})},
                      check_gemm,
                      build_gemm});
}

}  // namespace tessera::passes::reassemble
