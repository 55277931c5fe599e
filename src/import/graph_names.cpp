#include "import/graph_names.h"

#include <fmt/format.h>

#include "io/onnx.pb.h"

namespace tessera::importer {
namespace {

using Values = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;

// `what`: "graph input".
Status check_names(const Values& values, std::string_view what) {
  std::set<std::string_view> names;
  for (const auto& value : values) {
    if (value.name().empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("expected a name for each {}, found an empty one", what));
    }
    if (!names.insert(value.name()).second) {
      return fail(ErrorCode::kAlreadyExists,
                  fmt::format("{} '{}' stands there twice", what, value.name()));
    }
  }
  return {};
}

}  // namespace

std::set<std::string_view> input_names(const onnx::GraphProto& graph) {
  std::set<std::string_view> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  return names;
}

std::set<std::string_view> initializer_names(const onnx::GraphProto& graph) {
  std::set<std::string_view> names;
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  return names;
}

Status check_input_names(const onnx::GraphProto& graph) {
  return check_names(graph.input(), "graph input");
}

Status check_output_names(const onnx::GraphProto& graph) {
  return check_names(graph.output(), "graph output");
}

}  // namespace tessera::importer
