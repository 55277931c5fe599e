// docs/operators.md is what the op table and the conformance tables say: this makes the page anew
// and compares. `TESSERA_UPDATE=1` writes it instead (./dev operators).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "conformance/cases.h"
#include "ops/op_table.h"
#include "ops/schema_util.h"
#include "testing/backend_testing.h"
#include "testing/shared_data.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

struct Family {
  const char* name;
  ops::DTypeSet dtypes;
};

// Largest first: a set is written with as few of them as it takes, the rest one by one.
const Family kFamilies[] = {
    {"any", ops::kAllTypes},           {"fixed", ops::kFixedTypes},
    {"number", ops::kNumericTypes},    {"int", ops::kIntegerTypes},
    {"float", ops::kFloatTypes},       {"fp8", ops::kFp8Types},
    {"packed", ops::kPackedTypes},     {"signed", ops::kSignedTypes},
    {"unsigned", ops::kUnsignedTypes}, {"complex", ops::kComplexTypes},
    {"index", ops::kIndexTypes},
};

std::string dtypes_of(ops::DTypeSet dtypes) {
  std::string text;
  for (int code = 1; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if ((dtypes & ops::dtype_bit(dtype)) != 0)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(dtype));
  }
  return text;
}

std::string type_text(ops::DTypeSet dtypes) {
  std::string text;
  for (const Family& family : kFamilies) {
    if ((dtypes & family.dtypes) != family.dtypes) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", family.name);
    dtypes &= ~family.dtypes;
  }
  const std::string rest = dtypes_of(dtypes);
  return text + (text.empty() || rest.empty() ? "" : ", ") + rest;
}

std::string types_of(const ops::OpSchema& op) {
  std::string text;
  for (const auto& variable : op.type_variables)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", variable.name,
                        type_text(variable.allowed));
  return text;
}

std::string versions_of(const ops::OpSchema& op) {
  std::string text;
  for (const int version : op.versions)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", version);
  return text;
}

// The conformance cases whose graphs hold the operator, by its qualified name.
std::map<std::string, std::set<std::string>> cases_by_operator() {
  std::map<std::string, std::set<std::string>> cases;
  for (const OpCase& op_case : op_cases()) {
    const ir::Module module = module_of_statements(op_case.statements);
    for (const auto& node : module.methods[0].graph.nodes())
      cases[node->op->qualified_name()].insert(op_case.name);
  }
  return cases;
}

std::string runs_on(const ops::OpSchema& op, const std::set<std::string>& cases) {
  const bool replaced = op.kernel == nullptr && op.structure != ops::Structure::kControlFlow;
  if (replaced) return "import builds others in its place";
  if (op.kernel == nullptr) return "the runtime, its bodies on any device";
  if (cases.empty()) return "reference";
  std::size_t refused = 0;
  for (const Exclusion& entry : exclusions())
    refused += entry.device == "cpu" && cases.contains(entry.op_case) ? 1 : 0;
  if (refused == 0) return "cpu, reference";
  if (refused >= cases.size()) return "reference";
  return fmt::format("cpu ({} of {} cases), reference", cases.size() - refused, cases.size());
}

std::string page() {
  std::string text =
      "# Operators\n\n"
      "Made from the op table by `./dev operators`; a test holds it true. A model of any version "
      "that is listed is brought to the\nnewest one when it is imported, with the meaning that its "
      "own version had. Every operator runs on `reference`; `cpu` says for which of "
      "the\nconformance "
      "cases the processor has kernels of its own. Simulated devices take what their profiles say. "
      "What no operator, version or\ntype here covers is refused at import, by name.\n\n"
      "Types are families and single ones:\n";
  for (const Family& family : kFamilies)
    text += fmt::format("- `{}`: {}\n", family.name, dtypes_of(family.dtypes));
  const auto cases = cases_by_operator();
  std::string domain = "-";
  for (const ops::OpSchema& op : ops::all_ops()) {
    if (op.domain != domain) {
      domain = op.domain;
      text +=
          fmt::format("\n## {}\n\n| operator | versions | types | runs on |\n|---|---|---|---|\n",
                      domain.empty() ? "ai.onnx" : domain);
    }
    const auto tried = cases.find(op.qualified_name());
    text +=
        fmt::format("| {} | {} | {} | {} |\n", op.name, versions_of(op), types_of(op),
                    runs_on(op, tried == cases.end() ? std::set<std::string>() : tried->second));
  }
  text += "\n## Where the standard leaves something open\n\n";
  for (const ops::OpSchema& op : ops::all_ops()) {
    if (!op.unspecified.empty())
      text += fmt::format("- **{}**: {}\n", op.qualified_name(), op.unspecified);
  }
  return text;
}

TEST(OperatorsPage, IsWhatTheTablesSay) {
  const auto path = source_dir() / "docs" / "operators.md";
  if (std::getenv("TESSERA_UPDATE") != nullptr) {
    std::ofstream(path) << page();
    return;
  }
  EXPECT_EQ(read_bytes(path), page()) << "run ./dev operators";
}

}  // namespace
}  // namespace tessera::testing
