#include "import/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "import/attributes.h"
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

Status check_signature(const onnx::FunctionProto& proto) {
  std::set<std::string_view> inputs;
  for (const std::string& input : proto.input()) {
    if (!inputs.insert(input).second)
      return fail(ErrorCode::kAlreadyExists, fmt::format("input '{}' is named twice", input));
  }
  for (const auto& preset : proto.attribute_proto())
    TESSERA_TRY_IN(check_attribute(preset), fmt::format("attribute '{}'", preset.name()));
  return {};
}

// ---- Recursion ----------------------------------------------------------------------------------

// Functions as indices, in the order of the file, and whom each calls.
class CallGraph {
 public:
  explicit CallGraph(const Library& library) : library_(library) {}

  void add(const Function& function) {
    indices_.emplace(&function, functions_.size());
    functions_.push_back(&function);
  }

  Status find_calls(ImportBudget& budget) {
    calls_.resize(functions_.size());
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      add_calls(list_of(*functions_[i]->proto), functions_[i]->opsets, calls_[i]);
      std::sort(calls_[i].begin(), calls_[i].end());
      calls_[i].erase(std::unique(calls_[i].begin(), calls_[i].end()), calls_[i].end());
      constexpr std::uint64_t kCallBytes = 48;  // both ways, with the room that lists grow by
      TESSERA_TRY(budget.take(ImportBudget::Use::kFunctions, kCallBytes * calls_[i].size(), 0));
    }
    return {};
  }

  // Functions that call none that are left go, until none goes: what stays, leads to a circle.
  [[nodiscard]] Status check() const {
    std::vector<std::size_t> open(functions_.size());
    std::vector<std::vector<std::size_t>> callers(functions_.size());
    std::vector<std::size_t> done;
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      open[i] = calls_[i].size();
      if (open[i] == 0) done.push_back(i);
      for (const std::size_t callee : calls_[i]) callers[callee].push_back(i);
    }
    for (std::size_t next = 0; next < done.size(); ++next) {
      for (const std::size_t caller : callers[done[next]]) {
        if (--open[caller] == 0) done.push_back(caller);
      }
    }
    if (done.size() == functions_.size()) return {};
    return fail(ErrorCode::kInvalidArgument, describe_circle(open));
  }

 private:
  void add_calls(const NodeList& list, const OpsetImports& opsets, std::vector<std::size_t>& into) {
    for (const onnx::NodeProto* node : list.nodes) {
      const Function* called = library_.resolve(*node, opsets).function;
      if (called != nullptr) into.push_back(indices_.at(called));
      for (const auto& attribute : node->attribute()) {
        if (attribute.has_g()) add_calls(list_of(attribute.g()), opsets, into);
      }
    }
  }

  // Goes from the first that is left to whom it calls, until one comes again.
  [[nodiscard]] std::string describe_circle(const std::vector<std::size_t>& open) const {
    constexpr std::size_t kMaxNamed = 10;
    const auto is_left = [&](std::size_t index) { return open[index] > 0; };
    std::vector<std::size_t> path;
    std::vector<bool> seen(functions_.size(), false);
    auto at = static_cast<std::size_t>(
        std::find_if(open.begin(), open.end(), [](std::size_t count) { return count > 0; }) -
        open.begin());
    while (!seen[at]) {
      seen[at] = true;
      path.push_back(at);
      at = *std::find_if(calls_[at].begin(), calls_[at].end(), is_left);
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    std::string text;
    for (std::size_t i = 0; i < std::min(path.size(), kMaxNamed); ++i)
      text += fmt::format("'{}' -> ", functions_[path[i]]->name());
    if (path.size() > kMaxNamed) text += fmt::format("({} more) -> ", path.size() - kMaxNamed);
    return fmt::format("local functions are recursive: {}'{}' form a cycle of calls", text,
                       functions_[at]->name());
  }

  const Library& library_;
  std::vector<const Function*> functions_;
  std::map<const Function*, std::size_t> indices_;
  std::vector<std::vector<std::size_t>> calls_;
};

// ---- The walk -----------------------------------------------------------------------------------

class CensusTaker {
 public:
  CensusTaker(const Library& library, ImportBudget& budget) : library_(library), budget_(budget) {}

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
      TESSERA_TRY(count_operator(qualified_name(node.domain(), node.op_type())));
      if (resolved.op == nullptr && !is_constant(node))
        TESSERA_TRY(note(resolved.unsupported, node, index));
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
    if (path_.size() > static_cast<std::size_t>(kMaxCallDepth)) {
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("calls of local functions nest deeper than {} levels, at '{}'",
                              kMaxCallDepth, function.name()));
    }
    TESSERA_ASSIGN(const std::uint64_t size, walk(list_of(*function.proto), function.opsets));
    if (size > kMaxExpandedNodes) {
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("local function '{}' expands to more than {} nodes", function.name(),
                              kMaxExpandedNodes));
    }
    sizes_.emplace(&function, size);
    return size;
  }

  Status count_operator(std::string name) {
    constexpr std::uint64_t kOperatorBytes = 250;  // with its place in reports
    const std::uint64_t size_bytes = kOperatorBytes + kNameCopies * name.size();
    const auto [entry, is_new] = census.operators.try_emplace(std::move(name), 0);
    ++entry->second;
    if (!is_new) return {};
    return budget_.take(ImportBudget::Use::kOperators, size_bytes);
  }

  Status note(Unsupported unsupported, const onnx::NodeProto& node, std::size_t index) {
    if (!noted_.emplace(unsupported.domain, unsupported.op, unsupported.version).second) return {};
    std::string name;
    for (const auto& [call, at] : path_) name += shown_name(node_name(*call, at)) + "/";
    unsupported.node = shown_name(name + node_name(node, index));
    constexpr std::uint64_t kNoteBytes = 1200;  // with its place in reports
    TESSERA_TRY(budget_.take(
        ImportBudget::Use::kOperators,
        kNoteBytes + kNameCopies * (unsupported.op.size() + unsupported.domain.size()), 0));
    census.unsupported.push_back(std::move(unsupported));
    return {};
  }

  const Library& library_;
  ImportBudget& budget_;
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

Status Library::add_function(const onnx::FunctionProto& proto, ImportBudget& budget) {
  constexpr std::uint64_t kFunctionBytes = 450;
  TESSERA_TRY(budget.take(
      ImportBudget::Use::kFunctions,
      kFunctionBytes + proto.domain().size() + proto.name().size() + proto.overload().size()));
  if (proto.name().empty())
    return fail(ErrorCode::kInvalidArgument,
                "expected a name for each local function, found an empty one");
  const std::string place =
      fmt::format("local function '{}'", qualified_name(proto.domain(), proto.name()));
  TESSERA_TRY_IN(check_signature(proto), place);
  auto opsets = OpsetImports::of_function(proto, *opsets_, budget);
  if (!opsets) return tl::unexpected(in_context(std::move(opsets).error(), place));
  const Key key{normal_domain(proto.domain()), proto.name(), proto.overload()};
  if (functions_.emplace(key, Function{&proto, *std::move(opsets)}).second) return {};
  return fail(ErrorCode::kAlreadyExists, place + " stands there twice");
}

Status Library::check_recursion(const onnx::ModelProto& model, ImportBudget& budget) const {
  CallGraph calls(*this);
  for (const auto& proto : model.functions())
    calls.add(functions_.at(
        {std::string(normal_domain(proto.domain())), proto.name(), proto.overload()}));
  TESSERA_TRY(calls.find_calls(budget));
  return calls.check();
}

Result<Library> Library::of_model(const onnx::ModelProto& model, ImportBudget& budget) {
  Library library;
  TESSERA_ASSIGN(OpsetImports opsets, OpsetImports::of_model(model, budget));
  library.opsets_ = std::make_unique<const OpsetImports>(std::move(opsets));
  for (const auto& proto : model.functions()) TESSERA_TRY(library.add_function(proto, budget));
  TESSERA_TRY(library.check_recursion(model, budget));
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

Result<Census> take_census(const onnx::ModelProto& model, const Library& library,
                           ImportBudget& budget) {
  CensusTaker taker(library, budget);
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
