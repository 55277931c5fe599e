#include "ops/elementwise/cast_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/float_convert.h"
#include "ops/kernel_util.h"

namespace tessera::ops {
namespace {

template <typename T>
std::string number_text(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
    return fmt::format("{}", value);
  } else {
    return fmt::format("{}", value);
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  return text;
}

std::optional<double> parse_real(std::string_view text) {
  const std::string word = lower(trimmed(text));
  if (word == "nan" || word == "-nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf" || word == "infinity") return std::numeric_limits<double>::infinity();
  if (word == "-inf" || word == "-infinity") return -std::numeric_limits<double>::infinity();
  if (word == "true") return 1;
  if (word == "false") return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(word.c_str(), nullptr);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

// Integers exactly where the text is one (doubles hold 53 bits).
std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trimmed(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

tl::unexpected<Error> not_a_number(const std::string& text, DType dtype) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected the text of a number to cast to {}, found '{}'",
                          to_string(dtype), text));
}

}  // namespace

Status cast_to_strings(const TensorView& from, const MutableTensorView& to) {
  auto* out = to.as<std::string>();
  if (from.dtype == DType::kString) {
    std::copy_n(from.as<std::string>(), from.numel(), out);
    return {};
  }
  return dispatch(decltype(join(NumericTypes{}, Types<bool>{})){}, from.dtype,
                  [&](auto tag) -> Status {
                    using T = typename decltype(tag)::type;
                    for (std::int64_t i = 0; i < from.numel(); ++i)
                      out[i] = number_text(load(from.as<T>()[i]));
                    return {};
                  });
}

Status cast_from_strings(const TensorView& from, const MutableTensorView& to, bool saturate) {
  const auto* texts = from.as<std::string>();
  const auto count = static_cast<std::size_t>(from.numel());
  if (is_integer(to.dtype)) {
    std::vector<std::int64_t> integers;
    for (std::size_t i = 0; i < count; ++i) {
      auto value = parse_integer(texts[i]);
      if (!value) {
        const auto real = parse_real(texts[i]);
        if (!real) return not_a_number(texts[i], to.dtype);
        std::int64_t whole = 0;
        cast_elements({DType::kFp64, {}, &*real}, {DType::kInt64, {}, &whole}, true);
        value = whole;
      }
      integers.push_back(*value);
    }
    cast_elements({DType::kInt64, from.dims, integers.data()}, to, saturate);
    return {};
  }
  std::vector<double> reals;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = parse_real(texts[i]);
    if (!value) return not_a_number(texts[i], to.dtype);
    reals.push_back(*value);
  }
  cast_elements({DType::kFp64, from.dims, reals.data()}, to, saturate);
  return {};
}

}  // namespace tessera::ops
