#pragma once

// Attributes of ONNX nodes, references to a function's attributes resolved.

#include <map>
#include <string>

#include "base/error.h"
#include "import/constants.h"
#include "import/types.h"
#include "ops/attributes.h"
#include "ops/op.h"

namespace onnx {
class AttributeProto;
class NodeProto;
}  // namespace onnx

namespace tessera::importer {

struct Scope;

// An attribute as a node has it: what the model wrote there, or what the call of the function
// around it gave. A graph's outer names are those of the scope where it was written.
struct BoundAttribute {
  const onnx::AttributeProto* proto = nullptr;
  Scope* scope = nullptr;
};

// By name, sorted.
using BoundAttributes = std::map<std::string, BoundAttribute, std::less<>>;

// Errors: an unknown type, several values, one of another type than the attribute's, one beside a
// reference. The caller adds the attribute's name.
Status check_attribute(const onnx::AttributeProto& proto);

// The attributes of `node` in `scope`; a reference that the call leaves open is absent. Errors: a
// name that is empty or twice, those of check_attribute(), a reference outside of a function.
Result<BoundAttributes> bind_attributes(const onnx::NodeProto& node, Scope& scope);

// Whether it is a graph: a body of the node, no value.
bool holds_graph(const onnx::AttributeProto& proto);

// The value; sparse tensors come dense. Errors name the attribute.
Result<ops::AttributeValue> read_attribute(const std::string& name,
                                           const onnx::AttributeProto& proto,
                                           ConstantReader& constants, TypeReader& types);

// What a Constant node holds, whichever of its attributes says it. Errors: none or several of them.
Result<Tensor> read_constant(const BoundAttributes& attributes, ConstantReader& constants,
                             TypeReader& types);

// Attributes that the schema names have the types that it says, so that upgrades may rely on them.
// `version` is the since-version of the node: a few attributes had another type once.
Status check_attribute_types(const ops::OpSchema& op, int version,
                             const ops::Attributes& attributes);

}  // namespace tessera::importer
