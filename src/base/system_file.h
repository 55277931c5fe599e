#pragma once

// The small files in which Linux tells facts, below /proc and /sys.

#include <filesystem>
#include <string>

namespace tessera {

// Without its end; empty where the file cannot be read.
std::string first_line(const std::filesystem::path& path);

}  // namespace tessera
