#pragma once

// NumPy's .npz files: a zip archive of .npy members, each a named tensor.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "io/zip.h"

namespace tessera::io {

// In the order of the archive. Names are unique.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Reads what numpy.savez and numpy.savez_compressed write (zip64 as well). Errors name the path and
// the member: a damaged archive, a member that is not named *.npy, or what parse_npy refuses.
// Memory is taken only for sizes on which archive and npy header agree.
Result<NamedTensors> read_npz(const std::filesystem::path& path);

// Equal tensors give equal bytes. Names may hold any characters but NUL; dtypes that NumPy lacks
// are written as to_npy says.
Status write_npz(const std::filesystem::path& path, const NamedTensors& tensors,
                 ZipMethod method = ZipMethod::kStored);

}  // namespace tessera::io
