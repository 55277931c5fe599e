// Activation functions of com.microsoft, with what is added before them.

#include "ops/contrib/expansion.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

Status gelu(Expansion& e) {
  return e.replace({e.add("Gelu", {e.in(0)})});
}

Status bias_gelu(Expansion& e) {
  return e.replace({e.add("Gelu", {e.add("Add", {e.in(0), e.in(1)})})});
}

Status fast_gelu(Expansion& e) {
  const Operand x = e.has(1) ? e.add("Add", {e.in(0), e.in(1)}) : e.in(0);
  return e.replace({e.add("Gelu", {x}, attributes_of({{"approximate", "tanh"}}))});
}

// The left half times the Gelu of the right one.
Status bias_split_gelu(Expansion& e) {
  const auto halves =
      e.add_many("Split", 2, {e.add("Add", {e.in(0), e.in(1)})},
                 attributes_of({{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{2}}}));
  return e.replace({e.add("Mul", {halves[0], e.add("Gelu", {halves[1]})})});
}

Status bias_add(Expansion& e) {
  return e.replace({e.add("Add", {e.add("Add", {e.in(0), e.in(1)}), e.in(2)})});
}

}  // namespace

std::vector<OpSchema> contrib_activation_ops() {
  const std::vector<TypeVariable> floats = {{"T", kFloatTypes}};
  const std::vector<FormalParam> y = {required("Y", "T")};
  return {
      contrib::expanded_op("Gelu", {required("X", "T")}, y, {}, floats, contrib::expand<gelu>),
      contrib::expanded_op("BiasGelu", {required("A", "T"), required("B", "T")},
                           {required("C", "T")}, {}, floats, contrib::expand<bias_gelu>),
      contrib::expanded_op("FastGelu", {required("X", "T"), optional("bias", "T")}, y, {}, floats,
                           contrib::expand<fast_gelu>),
      contrib::expanded_op("BiasSplitGelu", {required("X", "T"), required("bias", "T")}, y, {},
                           floats, contrib::expand<bias_split_gelu>),
      contrib::expanded_op("BiasAdd",
                           {required("X", "T"), required("bias", "T"), required("skip", "T")}, y,
                           {}, floats, contrib::expand<bias_add>),
  };
}

}  // namespace tessera::ops
