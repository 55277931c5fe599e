#include "cases/compare_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/float_convert.h"

namespace tessera::testing {
namespace {

std::string type_text(const Tensor& tensor) {
  return fmt::format("{}[{}]", to_string(tensor.dtype()), fmt::join(tensor.dims(), ", "));
}

// As npz holds it: dtypes that NumPy lacks by their bits, packed elements in a byte each.
Tensor as_stored(const Tensor& tensor, DType wanted) {
  const int bits = bits_of(tensor.dtype());
  if (tensor.dtype() == wanted || bits == 0) return tensor;
  if (wanted == DType::kUInt16 && tensor.dtype() == DType::kBf16)
    return Tensor::copy_of({wanted, tensor.dims(), tensor.data()});
  const bool is_small = bits < 8 || (bits == 8 && is_float(tensor.dtype()));
  if (wanted != DType::kUInt8 || !is_small) return tensor;
  if (bits == 8) return Tensor::copy_of({wanted, tensor.dims(), tensor.data()});
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    bytes.push_back(packed_get(tensor.data(), i, bits));
  return Tensor::of<std::uint8_t>(wanted, tensor.dims(), bytes);
}

std::vector<double> as_doubles(const Tensor& tensor) {
  auto values = Tensor::zeros(DType::kFp64, tensor.dims());
  if (!values) return {};
  cast_elements(tensor.view(), values->mutable_view(), true);
  const auto span = values->span<double>();
  return {span.begin(), span.end()};
}

bool is_close(double expected, double found, const Tolerance& tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return expected == found;
  return std::abs(found - expected) <= tolerance.atol + tolerance.rtol * std::abs(expected);
}

// Real and imaginary parts as elements of their own.
Tensor parts_of(const Tensor& complex) {
  Dims dims = complex.dims();
  dims.push_back(2);
  const DType part = complex.dtype() == DType::kComplex64 ? DType::kFp32 : DType::kFp64;
  return Tensor::copy_of({part, std::move(dims), complex.data()});
}

std::string numeric_difference(const Tensor& expected, const Tensor& found,
                               const Tolerance& tolerance) {
  const auto wanted = as_doubles(expected);
  const auto given = as_doubles(found);
  std::size_t outside = 0;
  std::size_t first = 0;
  for (std::size_t i = wanted.size(); i-- > 0;) {
    if (is_close(wanted[i], given[i], tolerance)) continue;
    ++outside;
    first = i;
  }
  if (outside == 0) return {};
  return fmt::format("{} of {} elements differ, the first at {}: expected {}, found {}", outside,
                     wanted.size(), first, wanted[first], given[first]);
}

std::string string_difference(const Tensor& expected, const Tensor& found) {
  const auto wanted = expected.span<std::string>();
  const auto given = found.span<std::string>();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != given[i])
      return fmt::format("element {}: expected '{}', found '{}'", i, wanted[i], given[i]);
  return {};
}

}  // namespace

std::string difference(const Tensor& expected, const Tensor& original, const Tolerance& tolerance) {
  const Tensor found = as_stored(original, expected.dtype());
  if (expected.dtype() != found.dtype() || expected.dims() != found.dims())
    return fmt::format("expected {}, found {}", type_text(expected), type_text(original));
  const DType dtype = expected.dtype();
  if (dtype == DType::kString) return string_difference(expected, found);
  if (is_complex(dtype)) return numeric_difference(parts_of(expected), parts_of(found), tolerance);
  if (is_float(dtype)) return numeric_difference(expected, found, tolerance);
  if (expected.equals(found)) return {};
  // Equal doubles do not make equal 64-bit integers.
  const std::string text =
      numeric_difference(expected, found, tolerance.atol >= 1 ? tolerance : Tolerance());
  if (!text.empty() || tolerance.atol >= 1) return text;
  return "elements differ by less than a double can tell";
}

std::string difference(const io::NamedTensors& expected, const io::NamedTensors& found,
                       const Tolerance& tolerance) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& problem) {
    if (!problem.empty())
      text += fmt::format("{}output '{}': {}", text.empty() ? "" : "; ", name, problem);
  };
  const auto by_name = [](const io::NamedTensors& tensors, const std::string& name) {
    return std::ranges::find_if(tensors, [&](const auto& entry) { return entry.first == name; });
  };
  for (const auto& [name, tensor] : expected) {
    const auto at = by_name(found, name);
    add(name, at == found.end() ? "expected, found none of that name"
                                : difference(tensor, at->second, tolerance));
  }
  for (const auto& entry : found)
    if (by_name(expected, entry.first) == expected.end()) add(entry.first, "not expected");
  return text;
}

}  // namespace tessera::testing
