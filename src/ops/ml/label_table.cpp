#include "ops/ml/label_table.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "ops/kernel_util.h"

namespace tessera::ops::ml {
namespace {

using LabelTypes = Types<std::string, std::int64_t, float, double, std::int32_t, std::int16_t>;

// A NaN is found whatever its bits are: it comes behind all numbers.
struct KeyOrder {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
    }
    return a < b;
  }
};

}  // namespace

Status look_up(KernelContext& context, const LabelTable& table, std::string_view op) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, table.values.dtype(), input->dims));
  if (input->dtype != table.keys.dtype())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected {}, found {}", op, to_string(table.keys.dtype()),
                            to_string(input->dtype)));
  return dispatch(LabelTypes{}, input->dtype, [&](auto key_tag) -> Status {
    using Key = typename decltype(key_tag)::type;
    std::map<Key, std::size_t, KeyOrder> rows;  // the last of equal keys wins
    const auto keys = table.keys.span<Key>();
    for (std::size_t i = 0; i < keys.size(); ++i) rows.insert_or_assign(keys[i], i);
    return dispatch(LabelTypes{}, output.dtype, [&](auto value_tag) -> Status {
      using Value = typename decltype(value_tag)::type;
      const auto values = table.values.span<Value>();
      for (std::int64_t i = 0; i < input->numel(); ++i) {
        const auto row = rows.find(input->as<Key>()[i]);
        output.as<Value>()[i] =
            row == rows.end() ? table.fallback.span<Value>()[0] : values[row->second];
      }
      return {};
    });
  });
}

}  // namespace tessera::ops::ml
