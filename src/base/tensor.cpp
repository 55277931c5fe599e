#include "base/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/float_convert.h"

namespace tessera {
namespace {

constexpr std::size_t kAlignment = 64;

// Zeroed bytes, or null. calloc gives pages that are touched only when they are used.
std::shared_ptr<void> allocate_zeroed(std::size_t size_bytes) {
  if (size_bytes > SIZE_MAX - kAlignment) return nullptr;
  void* block = std::calloc(size_bytes + kAlignment, 1);
  if (block == nullptr) return nullptr;
  std::shared_ptr<void> owner(block, std::free);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t skip = (kAlignment - address % kAlignment) % kAlignment;
  return {owner, static_cast<std::byte*>(block) + skip};
}

std::shared_ptr<void> allocate_strings(std::size_t count) {
  const std::size_t size_bytes = count * sizeof(std::string);
  const auto block = allocate_zeroed(size_bytes);
  if (block == nullptr) return nullptr;
  auto* strings = static_cast<std::string*>(block.get());
  std::uninitialized_default_construct_n(strings, count);
  return {strings, [block, count](std::string* first) { std::destroy_n(first, count); }};
}

std::size_t alignment_of(DType dtype) {
  switch (dtype) {
    case DType::kString: return alignof(std::string);
    case DType::kComplex64: return alignof(float);
    case DType::kComplex128: return alignof(double);
    default: return std::max<std::size_t>(1, static_cast<std::size_t>(bits_of(dtype)) / 8);
  }
}

template <typename T>
void fill_int64(const TensorView& view, std::vector<std::int64_t>& values) {
  const T* elements = view.as<T>();
  std::transform(elements, elements + values.size(), values.begin(),
                 [](T element) { return static_cast<std::int64_t>(element); });
}

// Elements of a packed type; the sign bit of a signed one is extended.
void fill_packed(const TensorView& view, std::vector<std::int64_t>& values) {
  const int bits = bits_of(view.dtype);
  const bool is_signed = view.dtype == DType::kInt4 || view.dtype == DType::kInt2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t value = packed_get(view.data, static_cast<std::int64_t>(i), bits);
    if (is_signed && (value >> (bits - 1)) != 0) value -= std::int64_t{1} << bits;
    values[i] = value;
  }
}

}  // namespace

Result<Tensor> Tensor::zeros(DType dtype, Dims dims) {
  TESSERA_ASSIGN(const std::int64_t size_bytes, checked_nbytes(dtype, dims));
  Tensor tensor;
  tensor.data_ = dtype == DType::kString
                     ? allocate_strings(static_cast<std::size_t>(tessera::numel(dims)))
                     : allocate_zeroed(static_cast<std::size_t>(size_bytes));
  if (tensor.data_ == nullptr) {
    return fail(ErrorCode::kResourceExhausted, "out of memory: " + std::to_string(size_bytes) +
                                                   " bytes for " + std::string(to_string(dtype)) +
                                                   " " + to_string(dims));
  }
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.writable_ = true;
  return tensor;
}

Tensor Tensor::borrow(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner) {
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % alignment_of(dtype) != 0) {
    return copy_of(TensorView{dtype, std::move(dims), data});
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.data_ = std::shared_ptr<const void>(std::move(owner), data);
  return tensor;
}

Tensor Tensor::copy_of(const TensorView& view) {
  auto tensor = zeros(view.dtype, view.dims);
  TESSERA_CHECK(tensor.has_value());
  void* target = tensor->mutable_data();
  const std::int64_t count = view.numel();
  if (count == 0) return *std::move(tensor);
  if (view.dtype == DType::kString) {
    std::copy_n(view.as<std::string>(), count, static_cast<std::string*>(target));
  } else {
    std::memcpy(target, view.data, static_cast<std::size_t>(view.nbytes()));
  }
  return *std::move(tensor);
}

void* Tensor::mutable_data() {
  TESSERA_CHECK(writable_ && data_.use_count() == 1);
  return const_cast<void*>(data_.get());
}

Tensor Tensor::reshaped(Dims dims) const {
  TESSERA_CHECK(tessera::numel(dims) == numel());
  Tensor tensor = *this;
  tensor.dims_ = std::move(dims);
  return tensor;
}

ContentHash Tensor::content_hash() const {
  Hasher hasher;
  hasher.add(static_cast<std::int64_t>(dtype_)).add(static_cast<std::int64_t>(dims_.size()));
  for (const std::int64_t dim : dims_) hasher.add(dim);
  if (dtype_ == DType::kString) {
    for (const std::string& text : span<std::string>()) hasher.add(text);
  } else {
    hasher.add_bytes(data(), static_cast<std::size_t>(nbytes()));
  }
  return hasher.finish();
}

bool Tensor::equals(const Tensor& other) const {
  if (dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  if (dtype_ == DType::kString) {
    return std::ranges::equal(span<std::string>(), other.span<std::string>());
  }
  const auto size_bytes = static_cast<std::size_t>(nbytes());
  return size_bytes == 0 || std::memcmp(data(), other.data(), size_bytes) == 0;
}

std::vector<std::int64_t> to_int64_vector(const TensorView& view) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(view.numel()));
  switch (view.dtype) {
    case DType::kBool:
    case DType::kUInt8: fill_int64<std::uint8_t>(view, values); break;
    case DType::kInt8: fill_int64<std::int8_t>(view, values); break;
    case DType::kUInt16: fill_int64<std::uint16_t>(view, values); break;
    case DType::kInt16: fill_int64<std::int16_t>(view, values); break;
    case DType::kUInt32: fill_int64<std::uint32_t>(view, values); break;
    case DType::kInt32: fill_int64<std::int32_t>(view, values); break;
    case DType::kUInt64: fill_int64<std::uint64_t>(view, values); break;
    case DType::kInt64: fill_int64<std::int64_t>(view, values); break;
    default: TESSERA_CHECK(is_integer(view.dtype)); fill_packed(view, values);
  }
  return values;
}

}  // namespace tessera
