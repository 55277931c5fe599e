#pragma once

// ONNX → IR: a model file becomes a module with one method, "main", in the newest opset's meaning.
//
// Every error is a value that names the file, the node, the attribute or value, what was expected
// and what was found. Nothing of the file is trusted: sizes are compared with the bytes that are
// there before memory is asked for, external data is read only inside of the model's folder,
// recursion is bounded.

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/ir.h"

namespace tessera::importer {

struct ImportOptions {
  // Sizes of inputs in place of what the model declares, by name. A declared symbol that gets a
  // size here gets it everywhere.
  std::map<std::string, std::vector<Dim>> input_shapes;
  // Ranges of symbols, by name.
  std::map<std::string, SymbolRange> ranges;
  // State that the method keeps: (input, output that replaces it).
  std::vector<std::pair<std::string, std::string>> states;
};

// Imports a model file; external data is mapped lazily from the file's folder, and lives as long as
// the tensors do. Types are inferred and the module is verified. An initializer that is also an
// input is a constant, whatever the IR version: the value that a caller could override is not an
// input of the module.
Result<ir::Module> import_file(const std::filesystem::path& path,
                               const ImportOptions& options = {});

// The same from memory; `base_folder` is where external data may lie, null where there is none to
// be read.
Result<ir::Module> import_bytes(std::span<const std::byte> bytes,
                                const std::filesystem::path* base_folder,
                                const ImportOptions& options = {});

// An operator that the op table does not have at the version that the model needs.
struct Unsupported {
  std::string op;
  std::string domain;  // "ai.onnx" for the default one
  int version = 0;     // of the domain, as imported; 0 where the model does not import it
  std::string node;    // the first source node that needs it
  int nearest =
      0;  // the nearest version that is supported; 0 where the operator is not known at all
  std::string reason;
};

struct Inspection {
  std::vector<std::pair<std::string, ValueType>> inputs;   // without those that are initializers
  std::vector<std::pair<std::string, ValueType>> outputs;  // as declared
  std::map<std::string, int> opsets;  // by domain; "ai.onnx" for the default one
  std::int64_t ir_version = 0;
  std::string producer;  // name and version
  std::map<std::string, std::size_t>
      operators;  // nodes by operator, bodies and called functions included
  std::vector<Unsupported>
      unsupported;  // all of them, in order of first use, one for each operator
};

// Reads a model without its weights' files, and says what an import would miss. Errors: the file is
// not a sound model.
Result<Inspection> inspect_file(const std::filesystem::path& path);

}  // namespace tessera::importer
