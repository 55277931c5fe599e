#pragma once

// A loaded artefact: immutable, shared by any number of sessions on any threads.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/dtype.h"
#include "tessera/error.h"

namespace tessera {

namespace runtime {
class LoadedProgram;
}

struct LoadOptions {
  bool verify_segments = false;  // hash every weight, not the metadata alone
  std::string plan;  // which plan to run: "" is the chosen one, "cpu" the plan for the CPU alone
};

// An input or output of the program.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<std::int64_t> dims;      // -1 where the size may vary
  std::vector<std::string> dim_names;  // the expression of each size: "3", "batch", "2*h"
};

class Program {
 public:
  // Maps and checks the artefact. Errors: see artefact/read/reader.h; a device or backend that is
  // not here; no such plan.
  static Result<Program> load(const std::string& path, const LoadOptions& options = {});

  [[nodiscard]] std::vector<TensorInfo> inputs() const;
  [[nodiscard]] std::vector<TensorInfo> outputs() const;
  // What the artefact was made from and with: versions, target, hashes.
  [[nodiscard]] const std::map<std::string, std::string>& manifest() const;

  [[nodiscard]] const std::shared_ptr<const runtime::LoadedProgram>& loaded() const {
    return loaded_;
  }
  explicit Program(std::shared_ptr<const runtime::LoadedProgram> loaded)
      : loaded_(std::move(loaded)) {}

 private:
  std::shared_ptr<const runtime::LoadedProgram> loaded_;
};

}  // namespace tessera
