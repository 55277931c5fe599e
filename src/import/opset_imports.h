#pragma once

// The operator sets that a model or a local function imports: domain → version.

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "import/budget.h"

namespace onnx {
class FunctionProto;
class ModelProto;
}  // namespace onnx

namespace tessera::importer {

// "" and "ai.onnx" are one domain; inside it is "".
std::string_view normal_domain(std::string_view domain);
// The domain as messages name it: "ai.onnx" for the default one.
std::string domain_name(std::string_view domain);
// "Relu", or "com.microsoft::Gelu".
std::string qualified_name(std::string_view domain, std::string_view op_type);

class OpsetImports {
 public:
  // Errors: none at all (files of IR version 3 and newer must have one), a domain twice with two
  // versions, a version below 1, a version of the default domain that is newer than the op table,
  // the budget.
  static Result<OpsetImports> of_model(const onnx::ModelProto& model, ImportBudget& budget);
  // A function's own; what it does not import it takes from the model's, which outlive it. Errors:
  // as of_model().
  static Result<OpsetImports> of_function(const onnx::FunctionProto& function,
                                          const OpsetImports& model, ImportBudget& budget);

  // The version of a domain, 0 where it is not imported.
  [[nodiscard]] int version(std::string_view domain) const;
  // Its own, by domain.
  [[nodiscard]] const std::map<std::string, int, std::less<>>& versions() const {
    return versions_;
  }

 private:
  Status add(std::string_view domain, std::int64_t version, ImportBudget& budget);
  std::map<std::string, int, std::less<>> versions_;
  const OpsetImports* model_ = nullptr;  // of a function
};

}  // namespace tessera::importer
