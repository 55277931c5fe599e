#include "backends/cpu/run/quant_finish.h"

#include <algorithm>

namespace tessera::backends::cpu {
namespace {

// One value for each column, and zeros for a panel more: a tile may begin at any column.
std::vector<float> spread(const std::vector<float>& values, std::int64_t columns) {
  std::vector<float> result(static_cast<std::size_t>(columns + kPanelColumns), 0.0F);
  for (std::size_t c = 0; c < static_cast<std::size_t>(columns) && !values.empty(); ++c)
    result[c] = values[values.size() == 1 ? 0 : c];
  return result;
}

}  // namespace

Result<QuantFinish> QuantFinish::make(const QuantPlan& plan, std::int64_t columns,
                                      std::int64_t max_rows, std::int64_t width) {
  QuantFinish finish;
  finish.plan_ = &plan;
  finish.columns_ = columns;
  finish.width_ = width;
  finish.tile_elements_ = max_rows * width;
  finish.scale_ = spread(plan.scales, columns);
  finish.bias_ = spread(plan.bias, columns);
  finish.direct_ = !plan.program && plan.result && !plan.sums_result;
  if (finish.direct_) {
    for (float& scale : finish.scale_) scale /= plan.result->scale;
    for (float& bias : finish.bias_) bias /= plan.result->scale;
  }
  if (plan.program) {
    TESSERA_ASSIGN(finish.program_, plan.program->bind(finish.tile_elements_));
  }
  return finish;
}

// Tiles of fp32: the real sums, each operand of the program, its result, and its own scratch.
std::int64_t QuantFinish::scratch_bytes() const {
  const auto tile_bytes = tile_elements_ * static_cast<std::int64_t>(sizeof(float));
  if (!plan_->program) return tile_bytes;
  const auto operands = static_cast<std::int64_t>(plan_->program->tensors.size());
  return tile_bytes * (operands + 2) + (program_.scratch_bytes() + 63) / 64 * 64;
}

void QuantFinish::load_operands(const ExecuteArgs& args, const QuantTile& tile,
                                float* tiles) const {
  const Piece piece{static_cast<std::size_t>(tile.rows), static_cast<std::size_t>(tile.columns),
                    columns_, width_};
  const std::int64_t offset = tile.row * columns_ + tile.column;
  for (const QuantTensor& tensor : plan_->program->tensors) {
    const std::byte* data = args.inputs[static_cast<std::size_t>(tensor.operand)];
    std::fill(tiles, tiles + tile_elements_, 0.0F);
    if (tensor.quantised) {
      dequantize(tensor.params.dtype, data + offset, zero_of(tensor.params, args.inputs),
                 tensor.params.scale, tiles, piece);
    } else {
      for (std::int64_t r = 0; r < tile.rows; ++r)
        std::copy_n(floats(data) + offset + r * columns_, tile.columns, tiles + r * width_);
    }
    tiles += tile_elements_;
  }
}

void QuantFinish::run(const ExecuteArgs& args, const QuantTile& tile, const std::int32_t* sums,
                      std::byte* scratch) const {
  const std::int64_t offset = tile.row * columns_ + tile.column;
  const auto rows = static_cast<std::size_t>(tile.rows);
  const auto columns = static_cast<std::size_t>(tile.columns);
  if (plan_->sums_result) {
    auto* out = reinterpret_cast<std::int32_t*>(args.outputs[0]) + offset;
    for (std::size_t r = 0; r < rows; ++r)
      std::copy_n(sums + static_cast<std::int64_t>(r) * width_, columns,
                  out + static_cast<std::int64_t>(r) * columns_);
    return;
  }
  if (direct_) {
    requantize(plan_->result->dtype, sums, scale_.data() + tile.column, bias_.data() + tile.column,
               plan_->result->zero, args.outputs[0] + offset, {rows, columns, width_, columns_});
    return;
  }
  float* real = floats(scratch);
  scale_sums(sums, scale_.data() + tile.column, bias_.data() + tile.column, real,
             {rows, static_cast<std::size_t>(width_), width_, width_});
  if (plan_->program) {
    const std::byte* inputs[kMaxQuantTensors + 1] = {scratch};
    const std::size_t count = plan_->program->tensors.size();
    load_operands(args, tile, real + tile_elements_);
    for (std::size_t i = 0; i < count; ++i)
      inputs[i + 1] =
          reinterpret_cast<std::byte*>(real + static_cast<std::int64_t>(i + 1) * tile_elements_);
    float* result = real + static_cast<std::int64_t>(count + 1) * tile_elements_;
    std::byte* outputs[] = {reinterpret_cast<std::byte*>(result)};
    program_.run({{inputs, count + 1}, outputs, nullptr, nullptr}, 0, tile.rows * width_,
                 result + tile_elements_);
    real = result;
  }
  if (!plan_->result) {
    for (std::size_t r = 0; r < rows; ++r)
      std::copy_n(real + static_cast<std::int64_t>(r) * width_, columns,
                  floats(args.outputs[0]) + offset + static_cast<std::int64_t>(r) * columns_);
    return;
  }
  quantize(plan_->result->dtype, real, plan_->result->scale, plan_->result->zero,
           args.outputs[0] + offset, {rows, columns, width_, columns_});
}

}  // namespace tessera::backends::cpu
