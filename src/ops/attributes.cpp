#include "ops/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tessera::ops {
namespace {

struct NameLess {
  bool operator()(const std::pair<std::string, AttributeValue>& entry,
                  std::string_view name) const {
    return entry.first < name;
  }
};

template <typename T>
const T* typed(const AttributeValue* value) {
  if (value == nullptr) return nullptr;
  const T* held = std::get_if<T>(value);
  TESSERA_CHECK(held != nullptr);
  return held;
}

// Bit by bit, so that NaN equals itself and -0 differs from 0.
bool same(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}
bool same(const Tensor& a, const Tensor& b) {
  return a.equals(b);
}
template <typename T>
bool same(const T& a, const T& b) {
  return a == b;
}
template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return same(x, y); });
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string text_of(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string text_of(float value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
std::string text_of(const std::string& value) {
  return quoted(value);
}
std::string text_of(const Tensor& value) {
  return fmt::format("tensor({}[{}], {})", to_string(value.dtype()), to_string(value.dims()),
                     value.content_hash().to_string());
}
std::string text_of(const ValueType& value) {
  return value.to_string();
}
template <typename T>
std::string text_of(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) {
    if (out.size() > 1) out += ", ";
    out += text_of(value);
  }
  return out + "]";
}

}  // namespace

void Attributes::set(std::string name, AttributeValue value) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess{});
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, std::move(name), std::move(value));
  }
}

void Attributes::erase(std::string_view name) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess{});
  if (at != entries_.end() && at->first == name) entries_.erase(at);
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess{});
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

std::int64_t Attributes::get_int(std::string_view name, std::int64_t fallback) const {
  const auto* value = typed<std::int64_t>(find(name));
  return value != nullptr ? *value : fallback;
}

float Attributes::get_float(std::string_view name, float fallback) const {
  const auto* value = typed<float>(find(name));
  return value != nullptr ? *value : fallback;
}

std::string Attributes::get_string(std::string_view name, std::string fallback) const {
  const auto* value = typed<std::string>(find(name));
  if (value != nullptr) return *value;
  return fallback;
}

std::vector<std::int64_t> Attributes::get_ints(std::string_view name,
                                               std::vector<std::int64_t> fallback) const {
  const auto* value = typed<std::vector<std::int64_t>>(find(name));
  if (value != nullptr) return *value;
  return fallback;
}

std::vector<float> Attributes::get_floats(std::string_view name,
                                          std::vector<float> fallback) const {
  const auto* value = typed<std::vector<float>>(find(name));
  if (value != nullptr) return *value;
  return fallback;
}

bool Attributes::equals(const Attributes& other) const {
  return std::equal(entries_.begin(), entries_.end(), other.entries_.begin(), other.entries_.end(),
                    [](const auto& a, const auto& b) {
                      if (a.first != b.first || a.second.index() != b.second.index()) return false;
                      return std::visit(
                          [&b](const auto& value) {
                            return same(value, std::get<std::decay_t<decltype(value)>>(b.second));
                          },
                          a.second);
                    });
}

std::string Attributes::to_string() const {
  std::string out;
  for (const auto& [name, value] : entries_) {
    if (!out.empty()) out += ", ";
    out += name + "=" + ops::to_string(value);
  }
  return out;
}

std::string to_string(const AttributeValue& value) {
  return std::visit([](const auto& held) { return text_of(held); }, value);
}

}  // namespace tessera::ops
