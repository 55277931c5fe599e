// Operators of com.microsoft that the standard has under other signatures.

#include "ops/contrib/expansion.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

// `pads` may be [1, n], `value` [1].
Status pad(Expansion& e) {
  const Operand value = e.has(2) ? e.reshape(e.in(2), {}) : kNoOperand;
  return e.replace({e.add("Pad", {e.in(0), e.reshape(e.in(1), {-1}), value}, e.keep({"mode"}))});
}

// In the order in which the elements first stand in x.
Status unique(Expansion& e) {
  const auto found =
      e.add_many("Unique", 4, {e.in(0)}, attributes_of({{"sorted", std::int64_t{0}}}));
  return e.replace({found[0], found[2], found[3]});
}

Status trilu(Expansion& e) {
  return e.replace({e.add("Trilu", {e.in(0), e.in(1)}, e.keep({"upper"}))});
}

Status expand_dims(Expansion& e) {
  const Operand axis = e.reshape(e.cast(e.in(1), DType::kInt64), {1});
  return e.replace({e.add("Unsqueeze", {e.in(0), axis})});
}

Status range(Expansion& e) {
  TESSERA_ASSIGN(const DType dtype, e.dtype(0));
  const Operand delta = e.has(2) ? e.reshape(e.in(2), {}) : e.cast(e.scalar(1), dtype);
  return e.replace({e.add("Range", {e.reshape(e.in(0), {}), e.reshape(e.in(1), {}), delta})});
}

Status gather_nd(Expansion& e) {
  return e.replace({e.add("GatherND", {e.in(0), e.cast(e.in(1), DType::kInt64)})});
}

// Distances between the rows of A and those of B.
Status distances(Expansion& e) {
  const std::string metric = e.attributes().get_string("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean")
    return contrib::refuse_attribute("metric",
                                     "expected euclidean or sqeuclidean, found " + metric);
  const Operand rows = e.unsqueeze(e.in(0), {1});
  const Operand steps = e.add("Sub", {rows, e.unsqueeze(e.in(1), {0})});
  const Operand squares = e.add("ReduceSumSquare", {steps, e.ints({2})},
                                attributes_of({{"keepdims", std::int64_t{0}}}));
  return e.replace({metric == "euclidean" ? e.add("Sqrt", {squares}) : squares});
}

}  // namespace

std::vector<OpSchema> contrib_movement_ops() {
  const std::vector<TypeVariable> any = {{"T", kAllTypes}, {"I", kInt64Type}};
  return {
      contrib::expanded_op(
          "Pad", {required("data", "T"), required("pads", "I"), optional("value", "T")},
          {required("output", "T")}, {attr("mode", AttrType::kString)}, any, contrib::expand<pad>),
      contrib::expanded_op("Unique", {required("x", "T")},
                           {required("y", "T"), required("idx", "I"), required("counts", "I")}, {},
                           any, contrib::expand<unique>),
      contrib::expanded_op("Trilu", {required("X", "T"), optional("k", "I")}, {required("Y", "T")},
                           {attr("upper", AttrType::kInt)}, any, contrib::expand<trilu>),
      contrib::expanded_op(
          "ExpandDims", {required("X", "T"), required("axis", "A")}, {required("Y", "T")}, {},
          {{"T", kAllTypes}, {"A", dtype_bit(DType::kInt32)}}, contrib::expand<expand_dims>),
      contrib::expanded_op(
          "Range", {required("start", "T"), required("limit", "T"), optional("delta", "T")},
          {required("Y", "T")}, {},
          {{"T",
            dtype_set({DType::kFp32, DType::kFp64, DType::kInt16, DType::kInt32, DType::kInt64})}},
          contrib::expand<range>),
      contrib::expanded_op("GatherND", {required("data", "T"), required("indices", "I")},
                           {required("output", "T")}, {}, {{"T", kAllTypes}, {"I", kIndexTypes}},
                           contrib::expand<gather_nd>),
      contrib::expanded_op("CDist", {required("A", "T"), required("B", "T")}, {required("C", "T")},
                           {attr("metric", AttrType::kString)},
                           {{"T", dtype_set({DType::kFp32, DType::kFp64})}},
                           contrib::expand<distances>),
  };
}

}  // namespace tessera::ops
