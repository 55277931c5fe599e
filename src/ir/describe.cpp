#include "ir/describe.h"

namespace tessera::ir {

std::string describe(const Node& node) {
  return "node '" + node.name + "' (" + node.op->qualified_name() + ")";
}

std::string parameter_name(const std::vector<ops::FormalParam>& parameters, std::size_t index) {
  const bool is_tail = index + 1 >= parameters.size() && !parameters.empty() &&
                       parameters.back().arity == ops::FormalParam::Arity::kVariadic;
  if (is_tail) {
    return std::string(parameters.back().name) + "[" +
           std::to_string(index + 1 - parameters.size()) + "]";
  }
  if (index < parameters.size()) return std::string(parameters[index].name);
  return "#" + std::to_string(index);
}

}  // namespace tessera::ir
