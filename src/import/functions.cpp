#include "import/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "import/node_order.h"
#include "io/onnx.pb.h"
#include "ops/op_table.h"

namespace tessera::importer {
namespace {

// The since-version in force at `version`, 0 if there is none.
int since_version(const ops::OpSchema& op, int version) {
  int since = 0;
  for (const int candidate : op.versions) {
    if (candidate <= version) since = candidate;
  }
  return since;
}

std::string reason_for(const ops::OpSchema* op, int version, std::string_view domain) {
  if (version == 0)
    return fmt::format("the model does not import domain '{}'", domain_name(domain));
  if (op == nullptr) return "the operator is not known; no version of it is supported";
  return fmt::format("version {} is not supported; the nearest supported version is {}", version,
                     op->versions.front());
}

Status check_names(const onnx::FunctionProto& proto) {
  std::set<std::string_view> inputs;
  for (const std::string& input : proto.input()) {
    if (!inputs.insert(input).second)
      return fail(ErrorCode::kAlreadyExists, fmt::format("input '{}' is named twice", input));
  }
  return {};
}

// ---- The walk -----------------------------------------------------------------------------------

class CensusTaker {
 public:
  explicit CensusTaker(const Library& library) : library_(library) {}

  // Nodes that `list` expands to.
  Result<std::uint64_t> walk(const NodeList& list, const OpsetImports& opsets) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < list.nodes.size(); ++i) {
      TESSERA_ASSIGN(const std::uint64_t expanded, visit(*list.nodes[i], opsets, i));
      count = std::min(count + expanded, kMaxExpandedNodes + 1);
    }
    return count;
  }

  Census census;

 private:
  Result<std::uint64_t> visit(const onnx::NodeProto& node, const OpsetImports& opsets,
                              std::size_t index) {
    const Resolved resolved = library_.resolve(node, opsets);
    std::uint64_t count = 1;
    if (resolved.function != nullptr) {
      path_.emplace_back(&node, index);
      TESSERA_ASSIGN(count, visit_function(*resolved.function));
      path_.pop_back();
    } else {
      ++census.operators[qualified_name(node.domain(), node.op_type())];
      if (resolved.op == nullptr && !is_constant(node)) note(resolved.unsupported, node, index);
    }
    for (const auto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      TESSERA_ASSIGN(const std::uint64_t inside, walk(list_of(attribute.g()), opsets));
      count = std::min(count + inside, kMaxExpandedNodes + 1);
    }
    return count;
  }

  Result<std::uint64_t> visit_function(const Function& function) {
    const auto known = sizes_.find(&function);
    if (known != sizes_.end()) return known->second;
    const auto open = std::find(calls_.begin(), calls_.end(), &function);
    if (open != calls_.end()) return recursion(static_cast<std::size_t>(open - calls_.begin()));
    if (calls_.size() >= static_cast<std::size_t>(kMaxCallDepth)) {
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("calls of local functions nest deeper than {} levels, at '{}'",
                              kMaxCallDepth, function.name()));
    }
    calls_.push_back(&function);
    TESSERA_ASSIGN(const std::uint64_t size, walk(list_of(*function.proto), function.opsets));
    calls_.pop_back();
    if (size > kMaxExpandedNodes) {
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("local function '{}' expands to more than {} nodes", function.name(),
                              kMaxExpandedNodes));
    }
    sizes_.emplace(&function, size);
    return size;
  }

  [[nodiscard]] tl::unexpected<Error> recursion(std::size_t from) const {
    std::string text;
    for (std::size_t i = from; i < calls_.size(); ++i)
      text += fmt::format("'{}' -> ", calls_[i]->name());
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("local functions are recursive: {}'{}' form a cycle of calls", text,
                            calls_[from]->name()));
  }

  void note(Unsupported unsupported, const onnx::NodeProto& node, std::size_t index) {
    if (!noted_.emplace(unsupported.domain, unsupported.op, unsupported.version).second) return;
    std::string name;
    for (const auto& [call, at] : path_) name += shown_name(node_name(*call, at)) + "/";
    unsupported.node = shown_name(name + node_name(node, index));
    census.unsupported.push_back(std::move(unsupported));
  }

  const Library& library_;
  std::vector<const Function*> calls_;
  std::vector<std::pair<const onnx::NodeProto*, std::size_t>> path_;  // the nodes that call them
  std::map<const Function*, std::uint64_t> sizes_;
  std::set<std::tuple<std::string, std::string, int>> noted_;
};

}  // namespace

bool is_constant(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && normal_domain(node.domain()).empty();
}

std::string Function::name() const {
  return qualified_name(proto->domain(), proto->name());
}

Result<Library> Library::of_model(const onnx::ModelProto& model) {
  Library library;
  TESSERA_ASSIGN(library.opsets_, OpsetImports::of_model(model));
  for (const auto& proto : model.functions()) {
    const std::string place =
        fmt::format("local function '{}'", qualified_name(proto.domain(), proto.name()));
    TESSERA_TRY_IN(check_names(proto), place);
    auto opsets = OpsetImports::of_function(proto, library.opsets_);
    if (!opsets) return tl::unexpected(in_context(std::move(opsets).error(), place));
    const Key key{normal_domain(proto.domain()), proto.name(), proto.overload()};
    if (!library.functions_.emplace(key, Function{&proto, *std::move(opsets)}).second) {
      return fail(ErrorCode::kAlreadyExists, place + " stands there twice");
    }
  }
  return library;
}

Resolved Library::resolve(const onnx::NodeProto& node, const OpsetImports& opsets) const {
  Resolved resolved;
  const int version = opsets.version(node.domain());
  const ops::OpSchema* op = ops::find_op(normal_domain(node.domain()), node.op_type());
  if (op != nullptr && version > 0) resolved.since_version = since_version(*op, version);
  if (resolved.since_version > 0) {
    resolved.op = op;
    return resolved;
  }
  const auto function =
      functions_.find({std::string(normal_domain(node.domain())), node.op_type(), node.overload()});
  if (function != functions_.end()) {
    resolved.function = &function->second;
    return resolved;
  }
  resolved.unsupported = {node.op_type(),
                          domain_name(node.domain()),
                          version,
                          node.name(),
                          op == nullptr ? 0 : op->versions.front(),
                          reason_for(op, version, node.domain())};
  return resolved;
}

Result<Census> take_census(const onnx::ModelProto& model, const Library& library) {
  CensusTaker taker(library);
  TESSERA_ASSIGN(taker.census.node_count, taker.walk(list_of(model.graph()), library.opsets()));
  return std::move(taker.census);
}

std::string describe(const Unsupported& unsupported) {
  const std::string version =
      unsupported.version > 0 ? fmt::format(", opset {}", unsupported.version) : std::string();
  return fmt::format("operator '{}' (domain '{}'{}) of node '{}': {}", unsupported.op,
                     unsupported.domain, version, unsupported.node, unsupported.reason);
}

}  // namespace tessera::importer
