#include "import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "import/functions.h"
#include "import/graph_builder.h"
#include "import/graph_names.h"
#include "import/model_file.h"
#include "io/onnx.pb.h"
#include "ir/infer.h"
#include "ir/verify.h"

namespace tessera::importer {
namespace {

constexpr std::size_t kMaxListed = 10;  // unsupported operators in one message

Status check_supported(const Census& census) {
  const auto& unsupported = census.unsupported;
  if (unsupported.empty()) return {};
  std::string text = unsupported.size() == 1
                         ? std::string("not supported: ")
                         : fmt::format("{} operators are not supported: ", unsupported.size());
  for (std::size_t i = 0; i < std::min(unsupported.size(), kMaxListed); ++i)
    text += (i == 0 ? "" : "; ") + describe(unsupported[i]);
  if (unsupported.size() > kMaxListed)
    text += fmt::format("; and {} more, which inspect lists", unsupported.size() - kMaxListed);
  return fail(ErrorCode::kUnimplemented, std::move(text));
}

Status check_node_count(const Census& census) {
  if (census.node_count <= kMaxExpandedNodes) return {};
  return fail(ErrorCode::kResourceExhausted,
              fmt::format("the graph expands to more than {} nodes", kMaxExpandedNodes));
}

Result<std::map<std::string, std::string>> metadata_of(ModelFile& file,
                                                       const OpsetImports& opsets) {
  constexpr std::uint64_t kEntryBytes = 300;
  const onnx::ModelProto& model = *file.model;
  std::map<std::string, std::string> metadata;
  for (const auto& entry : model.metadata_props()) {
    TESSERA_TRY(file.budget.take(ImportBudget::Use::kMetadata,
                                 kEntryBytes + entry.key().size() + entry.value().size()));
    metadata.insert_or_assign("metadata_props." + entry.key(), entry.value());
  }
  for (const auto& [domain, version] : opsets.versions())
    metadata["opset_import." + domain_name(domain)] = std::to_string(version);
  metadata["ir_version"] = std::to_string(model.ir_version());
  metadata["producer_name"] = model.producer_name();
  metadata["producer_version"] = model.producer_version();
  metadata["model_version"] = std::to_string(model.model_version());
  metadata["model_hash"] = file.content_hash;
  return metadata;
}

Status set_ranges(const ImportOptions& options, SymbolTable& symbols) {
  for (const auto& [name, range] : options.ranges) {
    if (range.min < 0 || range.min > range.max) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("range of symbol '{}': expected 0 <= min <= max, found {}..{}", name,
                              range.min, range.max));
    }
    const auto symbol = symbols.find(name);
    if (symbol == symbols.end()) {
      std::string known;
      for (const auto& [other, unused] : symbols)
        known += (known.empty() ? "'" : ", '") + other + "'";
      return fail(ErrorCode::kNotFound,
                  fmt::format("range of symbol '{}': the model has no such symbol; it has {}", name,
                              known.empty() ? "none" : known));
    }
    symbol->second = range;
  }
  return {};
}

Status set_states(const ImportOptions& options, ir::Method& method) {
  const auto has = [&](const std::vector<ir::ValueId>& ids, const std::string& name) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](ir::ValueId id) { return method.graph.value(id).name == name; });
  };
  for (const auto& [input, output] : options.states) {
    if (!has(method.graph.inputs, input))
      return fail(ErrorCode::kNotFound,
                  fmt::format("state '{}={}': the model has no input '{}'", input, output, input));
    if (!has(method.graph.outputs, output))
      return fail(ErrorCode::kNotFound, fmt::format("state '{}={}': the model has no output '{}'",
                                                    input, output, output));
    method.states.push_back({input, output, {}});
  }
  return {};
}

Result<ir::Module> build_module(ModelFile file, ExternalData external,
                                const ImportOptions& options) {
  TESSERA_ASSIGN(const Library library, Library::of_model(*file.model, file.budget));
  TESSERA_ASSIGN(const Census census, take_census(*file.model, library, file.budget));
  TESSERA_TRY(check_supported(census));
  TESSERA_TRY(check_node_count(census));
  ir::Module module;
  module.name = file.model->graph().name();
  TESSERA_ASSIGN(module.metadata, metadata_of(file, library.opsets()));
  ir::Method& method = module.methods.emplace_back();
  method.name = "main";
  GraphBuilder builder(module, library, external, file.budget);
  TESSERA_TRY(builder.build_main(*file.model->mutable_graph(), options, method.graph));
  TESSERA_TRY(set_ranges(options, module.symbols));
  TESSERA_TRY(set_states(options, method));
  TESSERA_TRY(ir::infer(module).map([](const auto&) {}));
  TESSERA_TRY(ir::verify(module));
  return module;
}

Result<std::vector<std::pair<std::string, ValueType>>> read_types(
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values,
    const std::set<std::string_view>& skipped, TypeReader& types, ImportBudget& budget) {
  constexpr std::uint64_t kDeclaredBytes = 600;  // with its place in reports
  std::vector<std::pair<std::string, ValueType>> read;
  for (const auto& value : values) {
    if (skipped.contains(value.name())) continue;
    TESSERA_TRY(budget.take(ImportBudget::Use::kValues,
                            kDeclaredBytes + kNameCopies * value.name().size()));
    ValueType type;
    if (value.type().value_case() != onnx::TypeProto::VALUE_NOT_SET) {
      auto declared = types.read_hint(value.type());
      if (!declared)
        return tl::unexpected(in_context(std::move(declared).error(),
                                         fmt::format("type of value '{}'", value.name())));
      type = *std::move(declared);
    }
    read.emplace_back(value.name(), std::move(type));
  }
  return read;
}

Result<Inspection> inspect(const onnx::ModelProto& model, ImportBudget& budget) {
  TESSERA_ASSIGN(const Library library, Library::of_model(model, budget));
  TESSERA_ASSIGN(Census census, take_census(model, library, budget));
  TESSERA_TRY(check_input_names(model.graph()));
  TESSERA_TRY(check_output_names(model.graph()));
  Inspection inspection;
  SymbolTable symbols;
  TypeReader types(symbols, budget);
  TESSERA_ASSIGN(inspection.inputs, read_types(model.graph().input(),
                                               initializer_names(model.graph()), types, budget));
  TESSERA_ASSIGN(inspection.outputs, read_types(model.graph().output(), {}, types, budget));
  for (const auto& [domain, version] : library.opsets().versions())
    inspection.opsets[domain_name(domain)] = version;
  inspection.ir_version = model.ir_version();
  inspection.producer = model.producer_name() +
                        (model.producer_version().empty() ? "" : " " + model.producer_version());
  inspection.operators = std::move(census.operators);
  inspection.unsupported = std::move(census.unsupported);
  return inspection;
}

}  // namespace

Result<ir::Module> import_file(const std::filesystem::path& path, const ImportOptions& options) {
  const auto import = [&]() -> Result<ir::Module> {
    TESSERA_ASSIGN(ModelFile file, read_model_file(path));
    return build_module(std::move(file), ExternalData::beside(path), options);
  };
  auto module = import();
  if (!module) return tl::unexpected(in_context(std::move(module).error(), path.string()));
  if (module->name.empty()) module->name = path.stem().string();
  return module;
}

Result<ir::Module> import_bytes(std::span<const std::byte> bytes,
                                const std::filesystem::path* base_folder,
                                const ImportOptions& options) {
  TESSERA_ASSIGN(ModelFile file, parse_model(bytes));
  return build_module(std::move(file),
                      base_folder != nullptr ? ExternalData::inside(*base_folder) : ExternalData(),
                      options);
}

Result<Inspection> inspect_file(const std::filesystem::path& path) {
  const auto read = [&]() -> Result<Inspection> {
    TESSERA_ASSIGN(ModelFile file, read_model_file(path));
    return inspect(*file.model, file.budget);
  };
  auto inspection = read();
  if (!inspection) return tl::unexpected(in_context(std::move(inspection).error(), path.string()));
  return inspection;
}

}  // namespace tessera::importer
