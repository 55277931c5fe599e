#pragma once

// Text forms of the planning stages, for `dump` and for tests.

#include <string>
#include <vector>

#include "plan/choices.h"
#include "plan/lowered.h"

namespace tessera::compiler {

// Each proposed cover with its nodes.
std::string covers_text(const ir::Graph& graph, const std::vector<ir::Cover>& covers);

// "cpu onednn.conv (nchw/fp32 baked -> nchw/fp32)"; `prices`: with its price.
std::string option_text(const plan::Option& option, const plan::Target& target, bool prices);

// Each node and cover with what every device offers or why it refuses; `prices`: with the price of
// each.
std::string choices_text(const plan::Choices& choices, const plan::Target& target, bool prices);

// Steps in order: opcode, device, kernel, operands with their forms, region, price. Bodies follow,
// each under its number, which branch and loop steps name.
std::string lowered_text(const ir::Graph& graph, const std::vector<plan::Lowered>& lowered,
                         const plan::Target& target);

// The memory problem of each arena in minimalloc's CSV with offsets, and aliases as comments.
std::string memory_text(const ir::Graph& graph, const std::vector<plan::Lowered>& lowered,
                        const plan::Target& target);

}  // namespace tessera::compiler
