#pragma once

// What the names of a graph's inputs, outputs and initializers must hold.

#include <set>
#include <string_view>

#include "base/error.h"

namespace onnx {
class GraphProto;
}

namespace tessera::importer {

// The views live as long as the message.
std::set<std::string_view> input_names(const onnx::GraphProto& graph);
std::set<std::string_view> initializer_names(const onnx::GraphProto& graph);  // sparse ones too

// Errors: a name that is empty or stands there twice.
Status check_input_names(const onnx::GraphProto& graph);
Status check_output_names(const onnx::GraphProto& graph);

}  // namespace tessera::importer
