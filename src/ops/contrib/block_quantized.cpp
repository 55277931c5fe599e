// Weights of 2, 4 or 8 bits in blocks: MatMulNBits and GatherBlockQuantized. The packed bytes of a
// constant matrix become a tensor of the narrow dtype, which DequantizeLinear reads in blocks:
// below the limit of constant folding it becomes reals when the model is compiled, and fast
// products; above it stays as narrow as in the file, and is read anew by each run.

#include <fmt/format.h>

#include "ops/contrib/expansion.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

constexpr std::int64_t kSmallestBlock = 16;

struct Weights {
  std::int64_t bits, block, rows, columns, blocks;  // of a matrix [rows, columns], blocks per row
};

Result<DType> narrow_dtype(std::int64_t bits) {
  if (bits == 2) return DType::kUInt2;
  if (bits == 4) return DType::kUInt4;
  if (bits == 8) return DType::kUInt8;
  return contrib::refuse_attribute("bits", fmt::format("expected 2, 4 or 8, found {}", bits));
}

// Whole elements of `bits` bits in `bytes` bytes, as ONNX packs them too: the first one lowest.
Result<Tensor> as_narrow(const Tensor& bytes, std::int64_t bits, Dims dims,
                         std::string_view input) {
  TESSERA_ASSIGN(const DType dtype, narrow_dtype(bits));
  if (bytes.nbytes() != nbytes(dtype, dims))
    return contrib::refuse_input(
        input, fmt::format("expected {} bytes for {} of {}, found {}", nbytes(dtype, dims),
                           to_string(dims), to_string(dtype), bytes.nbytes()));
  return Tensor::copy_of(TensorView{dtype, std::move(dims), bytes.data()});
}

// Rows of packed elements, each filled up to whole bytes, with the filling left out.
Result<Tensor> packed_rows(const Tensor& bytes, std::int64_t bits, std::int64_t rows,
                           std::int64_t columns, std::string_view input) {
  TESSERA_ASSIGN(const DType dtype, narrow_dtype(bits));
  const std::int64_t row_bytes = (columns * bits + 7) / 8;
  if (bytes.nbytes() != rows * row_bytes)
    return contrib::refuse_input(input, fmt::format("expected {} bytes for each of {} rows, found "
                                                    "{} for all",
                                                    row_bytes, rows, bytes.nbytes()));
  TESSERA_ASSIGN(Tensor packed, Tensor::zeros(dtype, {rows, columns}));
  const auto* from = static_cast<const std::uint8_t*>(bytes.data());
  auto* to = static_cast<std::uint8_t*>(packed.mutable_data());
  const unsigned mask = (1U << static_cast<unsigned>(bits)) - 1U;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t in_row = column * bits;
      const unsigned value =
          (static_cast<unsigned>(from[row * row_bytes + in_row / 8]) >> (in_row % 8)) & mask;
      const std::int64_t at = (row * columns + column) * bits;
      to[at / 8] = static_cast<std::uint8_t>(to[at / 8] | (value << (at % 8)));
    }
  }
  return packed;
}

// Packed elements along the last axis of bytes that only the run knows, one byte each.
Operand unpacked_last(Expansion& e, Operand bytes, std::int64_t bits, std::int64_t rank) {
  if (bits == 8) return bytes;
  const auto byte = [&](std::int64_t value) { return e.cast(e.scalar(value), DType::kUInt8); };
  std::vector<Operand> parts;
  for (std::int64_t at = 0; at < 8; at += bits) {
    const Operand low =
        at == 0 ? bytes
                : e.add("BitShift", {bytes, byte(at)}, attributes_of({{"direction", "RIGHT"}}));
    parts.push_back(
        e.unsqueeze(e.add("BitwiseAnd", {low, byte((std::int64_t{1} << bits) - 1)}), {rank}));
  }
  std::vector<std::int64_t> target(static_cast<std::size_t>(rank), 0);
  target.back() = -1;
  return e.reshape(e.concat(std::move(parts), rank), target);
}

// The zero point that nobody gave, in the middle of the range: as many bytes as `like` has
// elements.
Operand middle(Expansion& e, std::int64_t bits, DType dtype, Operand like) {
  const Operand value = e.cast(e.scalar(std::int64_t{1} << (bits - 1)), dtype);
  return e.add("Expand", {value, e.add("Shape", {like})});
}

Result<std::int64_t> block_size(const Expansion& e, std::int64_t fallback) {
  const std::int64_t block = e.int_of("block_size", fallback);
  if (block >= kSmallestBlock && (block & (block - 1)) == 0) return block;
  return contrib::refuse_attribute(
      "block_size", fmt::format("expected a power of 2 from 16 on, found {}", block));
}

// ---- MatMulNBits --------------------------------------------------------------------------------

enum Input : std::size_t { kA, kB, kScales, kZeros, kGroups, kBias };

Result<Weights> read_weights(const Expansion& e) {
  Weights w{};
  w.bits = e.int_of("bits", 4);
  TESSERA_TRY(narrow_dtype(w.bits).map([](DType) {}));
  TESSERA_ASSIGN(w.block, block_size(e, 0));
  w.rows = e.int_of("N", 0);
  w.columns = e.int_of("K", 0);
  for (const auto& [name, size] : {std::pair{"N", w.rows}, std::pair{"K", w.columns}}) {
    if (size < 1)
      return contrib::refuse_attribute(name, fmt::format("expected 1 or more, found {}", size));
  }
  w.blocks = (w.columns + w.block - 1) / w.block;
  if (const std::int64_t prepacked = e.int_of("weight_prepacked", 0); prepacked != 0)
    return contrib::refuse_attribute("weight_prepacked",
                                     fmt::format("expected 0, found {}", prepacked));
  if (e.has(kGroups))
    return contrib::refuse_input("g_idx", "expected none (it is deprecated), found one");
  return w;
}

// [rows, blocks], whether the model has one axis or two.
Operand by_block(Expansion& e, std::size_t index, const Weights& w) {
  return e.reshape(e.in(index), {w.rows, w.blocks});
}

// Zero points as reals: (quantised - zero) * scale, over [rows, blocks, block].
Operand with_real_zeros(Expansion& e, Operand quantised, const Weights& w, DType dtype) {
  const Operand parts = e.reshape(e.cast(quantised, dtype), {w.rows, w.blocks, w.block});
  const Operand centred = e.add("Sub", {parts, e.unsqueeze(by_block(e, kZeros, w), {2})});
  const Operand scaled = e.add("Mul", {centred, e.unsqueeze(by_block(e, kScales, w), {2})});
  return e.reshape(scaled, {w.rows, w.blocks * w.block});
}

struct Quantized {
  Operand elements, zeros;
};

// As constants of the narrow dtype, which take no more room than in the model.
Result<Quantized> as_constants(Expansion& e, const Weights& w, bool packed_zeros) {
  TESSERA_ASSIGN(Tensor elements,
                 as_narrow(*e.known(e.in(kB)), w.bits, {w.rows, w.blocks * w.block}, "B"));
  const DType dtype = elements.dtype();
  const Operand constant = e.constant(std::move(elements));
  if (!packed_zeros) return Quantized{constant, middle(e, w.bits, dtype, by_block(e, kScales, w))};
  TESSERA_ASSIGN(Tensor zeros,
                 packed_rows(*e.known(e.in(kZeros)), w.bits, w.rows, w.blocks, "zero_points"));
  return Quantized{constant, e.constant(std::move(zeros))};
}

// One byte an element, unpacked when the model runs.
Quantized as_bytes(Expansion& e, const Weights& w, bool packed_zeros) {
  const Operand elements = unpacked_last(e, e.in(kB), w.bits, 3);
  Quantized quantized{e.reshape(elements, {w.rows, w.blocks * w.block}), kNoOperand};
  if (!packed_zeros) {
    quantized.zeros = middle(e, w.bits, DType::kUInt8, by_block(e, kScales, w));
    return quantized;
  }
  const Operand zeros = unpacked_last(e, e.reshape(e.in(kZeros), {w.rows, -1}), w.bits, 2);
  quantized.zeros = e.slice(zeros, 1, e.ints({0}), e.ints({w.blocks}));
  return quantized;
}

Result<Operand> dequantized(Expansion& e, const Weights& w) {
  TESSERA_ASSIGN(const DType dtype, e.dtype(kA));
  bool packed_zeros = false;
  if (e.has(kZeros)) {
    TESSERA_ASSIGN(const DType zeros, e.dtype(kZeros));
    packed_zeros = zeros == DType::kUInt8;
  }
  const bool constant =
      e.known(e.in(kB)) != nullptr && (!packed_zeros || e.known(e.in(kZeros)) != nullptr);
  Quantized quantized{};
  if (constant) {
    TESSERA_ASSIGN(quantized, as_constants(e, w, packed_zeros));
  } else {
    quantized = as_bytes(e, w, packed_zeros);
  }
  if (e.has(kZeros) && !packed_zeros) return with_real_zeros(e, quantized.elements, w, dtype);
  return e.add("DequantizeLinear", {quantized.elements, by_block(e, kScales, w), quantized.zeros},
               attributes_of({{"axis", std::int64_t{1}}, {"block_size", w.block}}));
}

Status matmul(Expansion& e) {
  TESSERA_ASSIGN(const Weights w, read_weights(e));
  TESSERA_ASSIGN(Operand b, dequantized(e, w));
  if (w.blocks * w.block != w.columns) b = e.slice(b, 1, e.ints({0}), e.ints({w.columns}));
  const Operand y = e.add("MatMul", {e.in(kA), e.transpose(b, {1, 0})});
  return e.replace({e.has(kBias) ? e.add("Add", {y, e.in(kBias)}) : y});
}

// accuracy_level is the least accuracy that A is read with; here A is read as it is.
OpSchema matmul_schema() {
  return contrib::expanded_op(
      "MatMulNBits",
      {required("A", "T1"), required("B", "T2"), required("scales", "T1"),
       optional("zero_points", "T3"), optional("g_idx", "T4"), optional("bias", "T1")},
      {required("Y", "T1")},
      {required_attr("K", AttrType::kInt), required_attr("N", AttrType::kInt),
       attr("accuracy_level", AttrType::kInt), attr("bits", AttrType::kInt),
       required_attr("block_size", AttrType::kInt), attr("weight_prepacked", AttrType::kInt)},
      {{"T1", kFloatTypes},
       {"T2", dtype_bit(DType::kUInt8)},
       {"T3", kFloatTypes | dtype_bit(DType::kUInt8)},
       {"T4", dtype_bit(DType::kInt32)}},
      contrib::expand<matmul>);
}

// ---- GatherBlockQuantized -----------------------------------------------------------------------

// Rows are gathered first, so that only they are unpacked and become reals.
Status gather(Expansion& e) {
  TESSERA_ASSIGN(const std::int64_t block, block_size(e, 128));
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(0));
  TESSERA_ASSIGN(const std::int64_t index_rank, e.rank(1));
  const std::int64_t gather_axis = e.int_of("gather_axis", 0);
  const std::int64_t quantize_axis = e.int_of("quantize_axis", 1);
  if (rank != 2 || gather_axis != 0 || (quantize_axis != 1 && quantize_axis != -1))
    return contrib::refuse_input(
        "data", fmt::format("expected rank 2, gathered along axis 0 and quantised along axis 1, "
                            "found rank {}, axes {} and {}",
                            rank, gather_axis, quantize_axis));
  TESSERA_ASSIGN(const DType dtype, e.dtype(0));
  const auto rows = [&](std::size_t index) { return e.add("Gather", {e.in(index), e.in(1)}); };
  Operand data = rows(0);
  const Operand scales = rows(2);
  Operand zeros = e.has(3) ? rows(3) : kNoOperand;
  if (dtype == DType::kUInt8) {
    const std::int64_t bits = e.int_of("bits", 4);
    TESSERA_TRY(narrow_dtype(bits).map([](DType) {}));
    TESSERA_ASSIGN(const std::int64_t blocks, e.size(2, 1));
    data = unpacked_last(e, data, bits, index_rank + 1);
    if (zeros == kNoOperand) {
      zeros = middle(e, bits, DType::kUInt8, scales);
    } else {
      zeros = e.slice(unpacked_last(e, zeros, bits, index_rank + 1), index_rank, e.ints({0}),
                      e.ints({blocks}));
    }
  }
  return e.replace({e.add("DequantizeLinear", {data, scales, zeros},
                          attributes_of({{"axis", index_rank}, {"block_size", block}}))});
}

OpSchema gather_schema() {
  return contrib::expanded_op(
      "GatherBlockQuantized",
      {required("data", "T1"), required("indices", "I"), required("scales", "T2"),
       optional("zero_points", "T1")},
      {required("output", "T2")},
      {attr("bits", AttrType::kInt), attr("block_size", AttrType::kInt),
       attr("gather_axis", AttrType::kInt), attr("quantize_axis", AttrType::kInt)},
      {{"T1", dtype_set({DType::kInt4, DType::kUInt4, DType::kUInt8})},
       {"T2", kFloatTypes},
       {"I", kIndexTypes}},
      contrib::expand<gather>);
}

}  // namespace

std::vector<OpSchema> block_quantized_ops() {
  return {matmul_schema(), gather_schema()};
}

}  // namespace tessera::ops
