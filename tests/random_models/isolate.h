#pragma once

// Checks in a process of their own, so that a crash or a hang is an answer too.

#include "random_models/differential.h"

namespace tessera::random_models {

// As check(), in a child. A child that dies or takes longer than `seconds` is a Failure of the way
// that it was in. The caller has no threads.
std::optional<Failure> check_isolated(const Model& model, const Evaluation& evaluation,
                                      const std::vector<Way>& ways, unsigned seconds = 60);

// Runs `body` in a child; what it returned, or how the child ended: for tests of the above too.
std::optional<Failure> run_isolated(
    const std::function<std::optional<Failure>(const std::function<void(const Way&)>& begin)>& body,
    unsigned seconds);

}  // namespace tessera::random_models
