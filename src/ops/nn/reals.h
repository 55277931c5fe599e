#pragma once

// Float tensors as arrays of one C++ type: kernels compute in float or double, whatever the dtype
// in memory.

#include <cstdint>
#include <vector>

#include "base/float_convert.h"
#include "base/tensor.h"
#include "ops/kernel_util.h"

namespace tessera::ops::nn {

// Elements of a tensor as T (float or double): its own memory where it has that type, else a
// converted copy. Integers that T holds exactly are fine. The view must outlive the object.
template <typename T>
class Reals {
 public:
  Reals() = default;
  explicit Reals(const TensorView& view) {
    if (view.dtype == dtype_of<T>()) {
      data_ = view.as<T>();
      return;
    }
    copy_.resize(static_cast<std::size_t>(view.numel()));
    cast_elements(view, {dtype_of<T>(), view.dims, copy_.data()}, true);
    data_ = copy_.data();
  }
  Reals(const Reals&) = delete;
  Reals& operator=(const Reals&) = delete;
  [[nodiscard]] const T* data() const { return data_; }
  const T& operator[](std::int64_t index) const { return data_[index]; }

 private:
  const T* data_ = nullptr;
  std::vector<T> copy_;
};

// Memory for a result in T: the output's own where it has that type, else a copy that finish()
// rounds into the output.
template <typename T>
class RealResult {
 public:
  explicit RealResult(MutableTensorView view) : view_(std::move(view)) {
    if (view_.dtype == dtype_of<T>()) {
      data_ = view_.as<T>();
    } else {
      copy_.resize(static_cast<std::size_t>(view_.numel()));
      data_ = copy_.data();
    }
  }
  RealResult(const RealResult&) = delete;
  RealResult& operator=(const RealResult&) = delete;
  [[nodiscard]] T* data() { return data_; }
  void finish() {
    if (data_ == copy_.data()) cast_elements({dtype_of<T>(), view_.dims, data_}, view_, true);
  }

 private:
  MutableTensorView view_;
  T* data_ = nullptr;
  std::vector<T> copy_;
};

// body(Tag<T>) with T = double for fp64 and float for the narrower floats; an error for other
// dtypes.
template <typename Body>
Status with_real(DType dtype, Body&& body) {
  if (dtype == DType::kFp64) return body(Tag<double>{});
  if (dtype == DType::kFp32 || dtype == DType::kFp16 || dtype == DType::kBf16)
    return body(Tag<float>{});
  return unsupported_dtype(dtype);
}

}  // namespace tessera::ops::nn
