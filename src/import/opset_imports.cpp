#include "import/opset_imports.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "io/onnx.pb.h"
#include "ops/op_table.h"

namespace tessera::importer {
namespace {

// The newest version of each domain that the ONNX standard versions. Others are their makers'.
constexpr std::array kNewestVersions = {
    std::pair<std::string_view, int>{"", ops::kNewestOpset},
    std::pair<std::string_view, int>{"ai.onnx.ml", 5},
    std::pair<std::string_view, int>{"ai.onnx.preview.training", 1},
};

}  // namespace

std::string_view normal_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string domain_name(std::string_view domain) {
  return normal_domain(domain).empty() ? "ai.onnx" : std::string(domain);
}

std::string qualified_name(std::string_view domain, std::string_view op_type) {
  if (normal_domain(domain).empty()) return std::string(op_type);
  return std::string(domain) + "::" + std::string(op_type);
}

Status OpsetImports::add(std::string_view domain, std::int64_t version, ImportBudget& budget) {
  constexpr std::uint64_t kOpsetBytes = 600;  // with its entries of the metadata and of reports
  const std::string name(normal_domain(domain));
  if (version < 1 || version > std::numeric_limits<int>::max()) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("opset import of domain '{}': expected a version of at least 1, found {}",
                    domain_name(name), version));
  }
  for (const auto& [known, newest] : kNewestVersions) {
    if (name == known && version > newest)
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("the model imports opset {} of domain '{}'; the newest version "
                              "that is supported is {}",
                              version, domain_name(name), newest));
  }
  const auto [entry, is_new] = versions_.emplace(name, static_cast<int>(version));
  if (is_new)
    return budget.take(ImportBudget::Use::kOpsets, kOpsetBytes + kNameCopies * name.size());
  if (entry->second != version) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("opset import of domain '{}': two versions, {} and {}",
                            domain_name(name), entry->second, version));
  }
  return {};
}

Result<OpsetImports> OpsetImports::of_model(const onnx::ModelProto& model, ImportBudget& budget) {
  OpsetImports imports;
  for (const auto& import : model.opset_import())
    TESSERA_TRY(imports.add(import.domain(), import.version(), budget));
  if (!imports.versions_.empty()) return imports;
  // Before IR version 3 there were no imports: everything was opset 1.
  if (model.ir_version() >= 3) {
    return fail(ErrorCode::kInvalidArgument,
                "expected at least one opset import (opset_import), found none");
  }
  imports.versions_.emplace("", 1);
  return imports;
}

Result<OpsetImports> OpsetImports::of_function(const onnx::FunctionProto& function,
                                               const OpsetImports& model, ImportBudget& budget) {
  OpsetImports imports;
  imports.model_ = &model;
  for (const auto& import : function.opset_import())
    TESSERA_TRY(imports.add(import.domain(), import.version(), budget));
  if (!imports.versions_.empty()) return imports;
  return fail(ErrorCode::kInvalidArgument,
              "expected at least one opset import (opset_import), found none");
}

int OpsetImports::version(std::string_view domain) const {
  const auto found = versions_.find(normal_domain(domain));
  if (found != versions_.end()) return found->second;
  return model_ != nullptr ? model_->version(domain) : 0;
}

}  // namespace tessera::importer
