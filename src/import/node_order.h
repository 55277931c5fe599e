#pragma once

// Order of a list of nodes by the values that they read, and what its names must hold.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace onnx {
class FunctionProto;
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace tessera::importer {

// A list of nodes with the names that it starts from. The pointers live as long as the message.
struct NodeList {
  std::vector<const onnx::NodeProto*> nodes;  // as the model lists them
  std::vector<std::string_view> inputs;  // formal inputs and initializers: defined before any node
};

NodeList list_of(const onnx::GraphProto& graph);
NodeList list_of(const onnx::FunctionProto& function);

// How messages and source nodes name a node: its name, or "<OpType>_<index>" in its list.
std::string node_name(const onnx::NodeProto& node, std::size_t index);

// A name as messages show it: of a giant one, its two ends.
std::string shown_name(std::string name);

// Indices of the nodes such that each stands after the producers of what it and its bodies read; as
// listed where that holds already. Names that nobody in the list makes come from outside. Errors: a
// name made twice (by whom), a cycle (its nodes).
Result<std::vector<std::size_t>> order_nodes(const NodeList& list);

// An upper estimate of the memory that order_nodes takes while it works.
std::uint64_t ordering_bytes(const NodeList& list);

}  // namespace tessera::importer
