#pragma once

// Movement operators as index tables: element (i0, i1, ...) of the result is the input's element at
// the sum of table[d][i_d].

#include <vector>

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

struct MoveTables {
  Dims dims;                                       // of the result, some cut into factors
  std::vector<std::vector<std::int64_t>> offsets;  // by dim and index; -1: the fill value
};

// Transpose, Slice, Expand, Tile, Pad, DepthToSpace, SpaceToDepth of a row-major input at those
// dims. Errors: what is computed at run time but must be known, attributes without code, dims that
// disagree, or so large that their tables would be too.
Result<MoveTables> move_tables(const artefact::KernelSpec& spec, Constants constants,
                               const InstanceDims& dims);

// A Pad's value as bytes of the element type (zeros where it is omitted). Errors: computed at run
// time.
Result<std::vector<std::byte>> fill_value(const artefact::KernelSpec& spec, Constants constants);

// Merges dims that lie together, so that runs become long.
void simplify(MoveTables& tables);

}  // namespace tessera::backends::cpu
