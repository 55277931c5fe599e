#pragma once

// The text by which graphs are compared after the fuse stage: two exports of one model print the
// same, however each spells the operators that covers re-assemble.

#include <string>
#include <vector>

#include "ir/cover.h"

namespace tessera::passes {

// Of the covers that bear an operator, the largest ones that do not overlap; by size, then by place
// in the list.
std::vector<const ir::Cover*> largest_assembled(const std::vector<ir::Cover>& covers);

// The module with those covers of its first method, each as the nodes that it is assembled of in
// the place of its pieces. Nodes stand in the order in which the outputs need them; nodes that no
// output needs are left out, and equal constants are one.
ir::Module assembled_module(const ir::Module& module, const std::vector<ir::Cover>& covers);

// Its canonical print (ir::PrintOptions).
std::string canonical_text(const ir::Module& module, const std::vector<ir::Cover>& covers);

}  // namespace tessera::passes
