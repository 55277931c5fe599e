#pragma once

// The parts of evaluation: one node at one point, by the kind of its operator.

#include "random_models/evaluate.h"

namespace tessera::random_models {

enum class Which : std::uint8_t { kNominal, kFirst, kSecond };
inline constexpr std::array kWhich = {Which::kNominal, Which::kFirst, Which::kSecond};

const Tensor& chosen(const Elements& elements, Which which);
bool same_storage(const Tensor& a, const Tensor& b);

tl::unexpected<Error> unusable(std::string why);

// Errors: the two are not one result that was rounded in two ways.
Status check_stable(const Tensor& nominal, const Tensor& shaken);

// The outputs of any node at `point`; `values` need to be there at that point alone.
Result<std::vector<Elements>> run_at(const Node& node, const Evaluation& values, std::size_t point,
                                     std::uint64_t number);

// If, Loop, Scan and SequenceMap, with slices and stacks made by the kernels of Gather, Unsqueeze
// and Concat. Errors beside those of run_at: a loop that does not end soon.
Result<std::vector<Elements>> run_bodies(const Node& node, const Evaluation& values,
                                         std::size_t point, std::uint64_t number);

// Operators that take or give sequences and optionals: they move tensors and shake none.
bool takes_held(const ops::OpSchema& op);
Result<std::vector<Elements>> run_on_held(const Node& node, const Evaluation& values,
                                          std::size_t point);

}  // namespace tessera::random_models
