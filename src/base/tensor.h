#pragma once

// Tensors in host memory, dense and row-major: views, and owned storage that copies share.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/dims.h"
#include "base/hash.h"

namespace tessera {

// Read-only elements that somebody else owns. `data` is aligned for the dtype; types of less
// than 8 bits hold the first element in the low bits; strings are std::string objects.
struct TensorView {
  DType dtype = DType::kUndefined;
  Dims dims;
  const void* data = nullptr;

  template <typename T>
  [[nodiscard]] const T* as() const {
    return static_cast<const T*>(data);
  }
  [[nodiscard]] std::int64_t numel() const { return tessera::numel(dims); }
  [[nodiscard]] std::int64_t nbytes() const { return tessera::nbytes(dtype, dims); }
};

// The same, writable.
struct MutableTensorView {
  DType dtype = DType::kUndefined;
  Dims dims;
  void* data = nullptr;

  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data);
  }
  [[nodiscard]] std::int64_t numel() const { return tessera::numel(dims); }
  [[nodiscard]] std::int64_t nbytes() const { return tessera::nbytes(dtype, dims); }
  [[nodiscard]] TensorView view() const { return {dtype, dims, data}; }
};

// A tensor that owns its elements (64-byte aligned, or kept alive by an owner such as a mapped
// file). Copies share storage; whoever shares it must not write.
class Tensor {
 public:
  Tensor() = default;

  // Zeroed elements (empty strings). Errors: overflow, out of memory.
  static Result<Tensor> zeros(DType dtype, Dims dims);
  // Elements kept alive by `owner`; `data` holds nbytes(dtype, dims) bytes, of any alignment
  // (copied if it is too small).
  static Tensor borrow(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner);
  static Tensor copy_of(const TensorView& view);  // aborts where memory runs out, as borrow does
  template <typename T>
  static Tensor of(DType dtype, Dims dims, std::span<const T> elements) {
    return copy_of(TensorView{dtype, std::move(dims), elements.data()});
  }

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Dims& dims() const { return dims_; }
  [[nodiscard]] const void* data() const { return data_.get(); }
  [[nodiscard]] void*
  mutable_data();  // only right after zeros(), while nobody shares the storage (checked)
  [[nodiscard]] std::int64_t numel() const { return tessera::numel(dims_); }
  [[nodiscard]] std::int64_t nbytes() const { return tessera::nbytes(dtype_, dims_); }
  [[nodiscard]] TensorView view() const { return {dtype_, dims_, data_.get()}; }
  [[nodiscard]] MutableTensorView mutable_view() { return {dtype_, dims_, mutable_data()}; }
  [[nodiscard]] bool is_defined() const { return dtype_ != DType::kUndefined; }
  [[nodiscard]] Tensor reshaped(Dims dims) const;  // the same storage; equal numel (checked)
  template <typename T>
  [[nodiscard]] std::span<const T> span() const {
    return {static_cast<const T*>(data()), static_cast<std::size_t>(numel())};
  }

  // Hash of dtype, dims and elements.
  [[nodiscard]] ContentHash content_hash() const;
  [[nodiscard]] bool equals(const Tensor& other) const;  // bit by bit

 private:
  DType dtype_ = DType::kUndefined;
  Dims dims_;
  std::shared_ptr<const void> data_;
  bool writable_ = false;  // the storage came from zeros(), not from an owner
};

// Elements of an integer tensor (any integer dtype or bool) as int64. TESSERA_CHECKs the dtype.
std::vector<std::int64_t> to_int64_vector(const TensorView& view);

}  // namespace tessera
