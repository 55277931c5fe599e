#pragma once

// How a value gets from the form in which it was produced to another one: transfers between
// memories and conversions of layout and dtype, with their prices. Along a fixed path from each
// produced form, so that consumers share the steps.

#include <map>
#include <optional>
#include <vector>

#include "plan/price.h"
#include "plan/target.h"

namespace tessera::plan {

// One step of a path: a transfer (memories differ, tensor forms agree) or a conversion within one
// memory.
struct ConversionStep {
  Form from;
  Form to;
  bool transfer = false;
  std::uint32_t device =
      0;  // which runs the conversion; for a transfer, the device at the far end from host
  backends::Candidate candidate;  // conversions only
  Price price;
};

class Conversions {
 public:
  Conversions(const ir::Graph& graph, Target& target, Pricer& pricer)
      : graph_(graph), target_(target), pricer_(pricer) {}

  // The steps from `root` to `form` (none where they are equal), or nothing where no path exists:
  // the cheapest order of at most one copy, one change of layout and one of dtype. The path to each
  // intermediate form is a prefix of the whole. Cached.
  const std::optional<std::vector<ConversionStep>>& path(ir::ValueId value, const Form& root,
                                                         const Form& form);

 private:
  std::optional<ConversionStep> step(ir::ValueId value, const Form& from, const Form& to);

  const ir::Graph& graph_;
  Target& target_;
  Pricer& pricer_;
  std::map<std::tuple<ir::ValueId, Form, Form>, std::optional<std::vector<ConversionStep>>> paths_;
  std::map<std::tuple<ir::ValueId, Form, Form>, std::optional<ConversionStep>> steps_;
};

}  // namespace tessera::plan
