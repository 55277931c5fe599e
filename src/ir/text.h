#pragma once

// The text form of the IR: print, and parse back to an equal module.

#include <map>
#include <string>
#include <string_view>

#include "ir/ir.h"

namespace tessera::ir {

// Large constants of a printed module by content hash; written as a side file (npz) beside the
// text.
using ConstantPool = std::map<std::string, Tensor, std::less<>>;

struct PrintOptions {
  std::int64_t inline_limit = 16;  // constants of more elements stand by hash
  bool canonical = false;  // names and origins stripped, values renumbered, all constants by hash:
                           // for comparing graphs
};

std::string print(const Module& module, const PrintOptions& options = {},
                  ConstantPool* pool = nullptr);

// Errors name line and column, what was expected and what was found; a hash that `pool` lacks is an
// error.
Result<Module> parse(std::string_view text, const ConstantPool& pool = {});

// Equal in everything but node ids, value ids, and values that no node produces or reads (neither
// are those printed).
bool equal(const Module& a, const Module& b);

}  // namespace tessera::ir
