#pragma once

// Attributes of a node: names to typed values. Graph-valued attributes are bodies of the IR's
// nodes, not values here; sparse tensors are stored dense.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/shape.h"
#include "base/tensor.h"

namespace tessera::ops {

using AttributeValue =
    std::variant<std::int64_t, float, std::string, Tensor, ValueType, std::vector<std::int64_t>,
                 std::vector<float>, std::vector<std::string>, std::vector<Tensor>>;

// Kept sorted by name, so that equal sets compare and print equal.
class Attributes {
 public:
  void set(std::string name, AttributeValue value);
  void erase(std::string_view name);
  [[nodiscard]] const AttributeValue* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  // The value, or `fallback` where the attribute is absent. The verifier has checked the types
  // before; a wrong one is a bug.
  [[nodiscard]] std::int64_t get_int(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] float get_float(std::string_view name, float fallback) const;
  [[nodiscard]] std::string get_string(std::string_view name, std::string fallback) const;
  [[nodiscard]] std::vector<std::int64_t> get_ints(std::string_view name,
                                                   std::vector<std::int64_t> fallback = {}) const;
  [[nodiscard]] std::vector<float> get_floats(std::string_view name,
                                              std::vector<float> fallback = {}) const;

  [[nodiscard]] const std::vector<std::pair<std::string, AttributeValue>>& entries() const {
    return entries_;
  }
  [[nodiscard]] bool equals(const Attributes& other) const;
  // `axis=1, pads=[0, 1], mode="reflect"`; tensors by content hash. For messages, keys and reports.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::pair<std::string, AttributeValue>> entries_;
};

std::string to_string(const AttributeValue& value);

}  // namespace tessera::ops
