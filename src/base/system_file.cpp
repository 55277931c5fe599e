#include "base/system_file.h"

#include <fstream>

namespace tessera {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace tessera
