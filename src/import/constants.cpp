#include "import/constants.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/float_convert.h"
#include "io/onnx.pb.h"
#include "io/tensor_proto.h"

namespace tessera::importer {
namespace {

std::string place_of(const onnx::TensorProto& proto) {
  return "tensor '" + proto.name() + "'";
}

Result<DType> dtype_of(const onnx::TensorProto& proto) {
  const int code = proto.data_type();
  if (code > 0 && code < kDTypeCount) return static_cast<DType>(code);
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected a known data type, found type code {}{}", code,
                          code == 0 ? " (undefined)" : ""));
}

bool is_external(const onnx::TensorProto& proto) {
  return proto.data_location() == onnx::TensorProto::EXTERNAL;
}

// ---- Sparse -------------------------------------------------------------------------------------

tl::unexpected<Error> sparse_error(std::string message) {
  return fail(ErrorCode::kInvalidArgument, "sparse: " + std::move(message));
}

// Row `row` of the indices as a linear index.
Result<std::int64_t> linear_index(const Tensor& indices, std::int64_t row, const Dims& dims) {
  const auto elements = indices.span<std::int64_t>();
  if (indices.dims().size() == 1) {
    const std::int64_t index = elements[static_cast<std::size_t>(row)];
    if (index < 0 || index >= numel(dims)) {
      return sparse_error(
          fmt::format("index {} is out of range for {} elements", index, numel(dims)));
    }
    return index;
  }
  std::int64_t linear = 0;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::int64_t index = elements[static_cast<std::size_t>(row) * dims.size() + axis];
    if (index < 0 || index >= dims[axis]) {
      return sparse_error(
          fmt::format("index {} is out of range for axis {} of size {}", index, axis, dims[axis]));
    }
    linear = linear * dims[axis] + index;
  }
  return linear;
}

Status check_sparse(const Tensor& values, const Tensor& indices, const Dims& dims) {
  if (values.dims().size() != 1) {
    return sparse_error("expected values of rank 1, found rank " +
                        std::to_string(values.dims().size()));
  }
  if (indices.dtype() != DType::kInt64) {
    return sparse_error(
        fmt::format("expected indices of int64, found {}", to_string(indices.dtype())));
  }
  const Dims one_each = {values.numel()};
  const Dims row_each = {values.numel(), static_cast<std::int64_t>(dims.size())};
  if (indices.dims() != one_each && indices.dims() != row_each) {
    return sparse_error(fmt::format("expected indices of shape {} or {}, found {}",
                                    to_string(one_each), to_string(row_each),
                                    to_string(indices.dims())));
  }
  return {};
}

void copy_element(const Tensor& values, std::int64_t from, Tensor& dense, std::int64_t to) {
  const int bits = bits_of(values.dtype());
  if (values.dtype() == DType::kString) {
    static_cast<std::string*>(dense.mutable_data())[to] =
        static_cast<const std::string*>(values.data())[from];
  } else if (bits < 8) {
    packed_set(dense.mutable_data(), to, bits, packed_get(values.data(), from, bits));
  } else {
    const std::int64_t size = bits / 8;
    std::memcpy(static_cast<char*>(dense.mutable_data()) + to * size,
                static_cast<const char*>(values.data()) + from * size,
                static_cast<std::size_t>(size));
  }
}

// The linear index of each value, strictly ascending.
Result<std::vector<std::int64_t>> places_of(const Tensor& values, const Tensor& indices,
                                            const Dims& dims) {
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < values.numel(); ++row) {
    TESSERA_ASSIGN(const std::int64_t index, linear_index(indices, row, dims));
    if (!places.empty() && index <= places.back())
      return sparse_error(
          fmt::format("expected ascending indices, found {} after {}", index, places.back()));
    places.push_back(index);
  }
  return places;
}

}  // namespace

Result<Tensor> ConstantReader::read_external(const onnx::TensorProto& proto) {
  TESSERA_ASSIGN(const DType dtype, dtype_of(proto));
  const std::string_view inline_field = io::data_field_of(proto);
  if (!inline_field.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected external data alone, found {} as well", inline_field));
  }
  const Dims dims(proto.dims().begin(), proto.dims().end());
  TESSERA_TRY(checked_nbytes(dtype, dims).map([](std::int64_t) {}));
  return external_.read(proto, dtype, dims);
}

template <typename Proto>
Result<Tensor> ConstantReader::read_any(Proto&& proto) {
  const std::string place = place_of(proto);
  const bool in_file = is_external(proto);
  Result<Tensor> tensor =
      in_file ? read_external(proto) : io::tensor_from_proto(std::forward<Proto>(proto));
  if (!tensor) return tl::unexpected(in_context(std::move(tensor).error(), place));
  if (in_file) return tensor;
  const auto size_bytes = static_cast<std::uint64_t>(tensor->nbytes());
  TESSERA_TRY_IN(budget_.take(ImportBudget::Use::kElements, size_bytes, size_bytes), place);
  return tensor;
}

Result<Tensor> ConstantReader::read(onnx::TensorProto&& proto) {
  return read_any(std::move(proto));
}

Result<Tensor> ConstantReader::read(const onnx::TensorProto& proto) {
  const auto known = known_.find(&proto);
  if (known != known_.end()) return known->second;
  TESSERA_ASSIGN(Tensor tensor, read_any(proto));
  return known_.emplace(&proto, std::move(tensor)).first->second;
}

Result<Tensor> ConstantReader::expand(const onnx::SparseTensorProto& proto) {
  TESSERA_ASSIGN(const Tensor values, read(proto.values()));
  TESSERA_ASSIGN(const Tensor indices, read(proto.indices()));
  const Dims dims(proto.dims().begin(), proto.dims().end());
  TESSERA_TRY(check_sparse(values, indices, dims));
  TESSERA_ASSIGN(const std::int64_t size_bytes, checked_nbytes(values.dtype(), dims));
  if (size_bytes > kMaxExpandedBytes) {
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("sparse: the shape {} takes {} bytes when dense; the limit is {}",
                            to_string(dims), size_bytes, kMaxExpandedBytes));
  }
  TESSERA_ASSIGN(const auto places, places_of(values, indices, dims));
  const auto taken = static_cast<std::uint64_t>(size_bytes);
  TESSERA_TRY_IN(budget_.take(ImportBudget::Use::kElements, taken, taken), "sparse");
  TESSERA_ASSIGN(Tensor dense, Tensor::zeros(values.dtype(), dims));
  for (std::size_t row = 0; row < places.size(); ++row)
    copy_element(values, static_cast<std::int64_t>(row), dense, places[row]);
  return dense;
}

Result<Tensor> ConstantReader::read(const onnx::SparseTensorProto& proto) {
  const auto known = known_.find(&proto);
  if (known != known_.end()) return known->second;
  auto dense = expand(proto);
  if (!dense)
    return tl::unexpected(
        in_context(std::move(dense).error(), "sparse tensor '" + proto.values().name() + "'"));
  return known_.emplace(&proto, *std::move(dense)).first->second;
}

}  // namespace tessera::importer
