#include "ops/kernel_util.h"

#include <fmt/format.h>

#include <cstring>

namespace tessera::ops {
namespace {

bool is_packed(DType dtype) {
  return bits_of(dtype) > 0 && bits_of(dtype) < 8;
}

// Stands between a kernel and its context: packed outputs go to bytes of their own first.
class UnpackedContext final : public KernelContext {
 public:
  UnpackedContext(KernelContext& context, std::span<const TensorView* const> inputs)
      : KernelContext(context.attributes(), inputs),
        context_(context),
        bytes_(context.output_count()),
        outputs_(context.output_count()) {}

  [[nodiscard]] std::size_t output_count() const override { return outputs_.size(); }

  Result<MutableTensorView> output(std::size_t index, DType dtype, const Dims& dims) override {
    TESSERA_ASSIGN(outputs_[index], context_.output(index, dtype, dims));
    if (!is_packed(dtype)) return outputs_[index];
    TESSERA_ASSIGN(bytes_[index], Tensor::zeros(DType::kUInt8, dims));
    return MutableTensorView{dtype, dims, bytes_[index].mutable_data()};
  }

  void parallel_for(std::int64_t count, std::int64_t grain,
                    const std::function<void(std::int64_t, std::int64_t)>& body) override {
    context_.parallel_for(count, grain, body);
  }

  void pack_outputs() {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (!bytes_[k].is_defined()) continue;
      const auto bytes = bytes_[k].span<std::uint8_t>();
      if (bytes.empty()) continue;
      outputs_[k].as<std::uint8_t>()[outputs_[k].nbytes() - 1] = 0;  // what no element covers
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        packed_set(outputs_[k].data, static_cast<std::int64_t>(i), bits_of(outputs_[k].dtype),
                   bytes[i]);
      }
    }
  }

 private:
  KernelContext& context_;
  std::vector<Tensor> bytes_;
  std::vector<MutableTensorView> outputs_;
};

Result<Tensor> spread(const TensorView& packed) {
  TESSERA_ASSIGN(Tensor bytes, Tensor::zeros(DType::kUInt8, packed.dims));
  auto* to = static_cast<std::uint8_t*>(bytes.mutable_data());
  for (std::int64_t i = 0; i < packed.numel(); ++i)
    to[i] = packed_get(packed.data, i, bits_of(packed.dtype));
  return bytes;
}

}  // namespace

Status run_unpacked(KernelContext& context, KernelFn kernel) {
  std::vector<Tensor> bytes(context.input_count());
  std::vector<TensorView> views(context.input_count());
  std::vector<const TensorView*> inputs(context.input_count(), nullptr);
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = context.input(i);
    if (inputs[i] == nullptr || !is_packed(inputs[i]->dtype)) continue;
    TESSERA_ASSIGN(bytes[i], spread(*inputs[i]));
    views[i] = {inputs[i]->dtype, inputs[i]->dims, bytes[i].data()};
    inputs[i] = &views[i];
    any = true;
  }
  if (!any) return kernel(context);
  UnpackedContext wrapped(context, inputs);
  TESSERA_TRY(kernel(wrapped));
  wrapped.pack_outputs();
  return {};
}

tl::unexpected<Error> unsupported_dtype(DType dtype) {
  return fail(ErrorCode::kUnimplemented,
              fmt::format("no reference kernel for dtype {}", to_string(dtype)));
}

Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    strides[d] = step;
    step *= dims[d];
  }
  return strides;
}

Dims broadcast_strides(const Dims& dims, const Dims& out) {
  Dims strides(out.size(), 0);
  const Dims own = row_major_strides(dims);
  const std::size_t shift = out.size() - dims.size();
  for (std::size_t d = 0; d < dims.size(); ++d) strides[shift + d] = dims[d] == 1 ? 0 : own[d];
  return strides;
}

std::int64_t count_between(const Dims& dims, std::size_t begin, std::size_t end) {
  std::int64_t count = 1;
  for (std::size_t d = begin; d < end; ++d) count *= dims[d];
  return count;
}

void collapse_dims(Dims& dims, std::vector<Dims>& strides) {
  std::size_t kept = 0;  // dims [0, kept) are final
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    bool merge = kept > 0;
    for (const Dims& operand : strides) merge = merge && operand[kept - 1] == operand[d] * dims[d];
    if (merge) {
      dims[kept - 1] *= dims[d];
      for (Dims& operand : strides) operand[kept - 1] = operand[d];
    } else {
      dims[kept] = dims[d];
      for (Dims& operand : strides) operand[kept] = operand[d];
      ++kept;
    }
  }
  dims.resize(kept);
  for (Dims& operand : strides) operand.resize(kept);
}

Result<const TensorView*> kernel_input(const KernelContext& context, std::size_t index) {
  const TensorView* input = context.input(index);
  if (input == nullptr)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input {}: expected a tensor, found none", index));
  return input;
}

void copy_elements(const TensorView& from, const MutableTensorView& to) {
  if (from.dtype == DType::kString) {
    std::copy_n(from.as<std::string>(), from.numel(), to.as<std::string>());
  } else if (from.nbytes() > 0) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(from.nbytes()));
  }
}

}  // namespace tessera::ops
