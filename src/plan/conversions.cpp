#include "plan/conversions.h"

#include <algorithm>
#include <limits>

namespace tessera::plan {

std::optional<ConversionStep> Conversions::step(ir::ValueId value, const Form& from,
                                                const Form& to) {
  const auto key = std::tuple(value, from, to);
  if (const auto known = steps_.find(key); known != steps_.end()) return known->second;
  std::optional<ConversionStep> best;
  // Nothing moves what is no tensor of known rank.
  if (!graph_.value(value).type.is_tensor() || !graph_.value(value).type.shape)
    return steps_.emplace(key, std::move(best)).first->second;
  const Shape& shape = *graph_.value(value).type.shape;
  if (from.memory != to.memory) {
    const auto dims = evaluate(shape, pricer_.point());
    if (from.tensor == to.tensor && dims) {
      const std::uint32_t far = to.memory != kHostMemory ? to.memory : from.memory;
      const auto device = std::ranges::find(target_.memory_of, far) - target_.memory_of.begin();
      const auto size =
          static_cast<double>(layout_nbytes(from.tensor.layout, from.tensor.dtype, *dims));
      best = ConversionStep{from, to,
                            true, static_cast<std::uint32_t>(device),
                            {},   {pricer_.transfer_us(from.memory, to.memory, size), false, {}}};
    }
  } else {
    for (std::uint32_t device = 0; device < target_.device_count(); ++device) {
      if (target_.memory_of[device] != from.memory) continue;
      auto offers =
          target_.devices[device]->conversion(from.tensor, to.tensor, shape, pricer_.point());
      for (auto& candidate : offers.candidates) {
        const Price price = pricer_.price({.item = nullptr,
                                           .device = device,
                                           .candidate = &candidate,
                                           .from = from.tensor,
                                           .to = to.tensor,
                                           .shape = shape});
        if (!best || price.us < best->price.us)
          best = ConversionStep{from, to, false, device, std::move(candidate), price};
      }
    }
  }
  return steps_.emplace(key, std::move(best)).first->second;
}

// The cheapest way by dynamic programming over what has changed so far: the last step changes the
// dtype, the layout or the memory, and what stands before it is the path to the form that it starts
// from. So prefixes of paths are paths. Of equal sums the copy comes first, then the layout.
const std::optional<std::vector<ConversionStep>>& Conversions::path(ir::ValueId value,
                                                                    const Form& root,
                                                                    const Form& form) {
  const auto key = std::tuple(value, root, form);
  if (const auto known = paths_.find(key); known != paths_.end()) return known->second;
  std::vector<Form> before;
  if (form.tensor.dtype != root.tensor.dtype)
    before.push_back({form.memory, {form.tensor.layout, root.tensor.dtype}});
  if (form.tensor.layout != root.tensor.layout)
    before.push_back({form.memory, {root.tensor.layout, form.tensor.dtype}});
  if (form.memory != root.memory) before.push_back({root.memory, form.tensor});
  std::optional<std::vector<ConversionStep>> best;
  if (before.empty()) best.emplace();
  double best_us = std::numeric_limits<double>::infinity();
  for (const Form& from : before) {
    const auto& shorter = path(value, root, from);
    if (!shorter) continue;
    auto last = step(value, from, form);
    if (!last) continue;
    double total_us = last->price.us;
    for (const ConversionStep& entry : *shorter) total_us += entry.price.us;
    if (best && total_us >= best_us) continue;
    best_us = total_us;
    best = *shorter;
    best->push_back(*std::move(last));
  }
  return paths_.emplace(key, std::move(best)).first->second;
}

}  // namespace tessera::plan
