// RegexFullMatch, by RE2, the library whose syntax the standard names: time linear in the text.

#include <fmt/format.h>
#include <re2/re2.h>

#include <memory>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// Errors name the attribute and say what is wrong with the pattern.
Result<std::unique_ptr<const RE2>> compiled(const Attributes& attributes) {
  RE2::Options options;
  options.set_log_errors(false);
  const std::string pattern = attributes.get_string("pattern", "");
  auto regex = std::make_unique<const RE2>(pattern, options);
  if (!regex->ok())
    return attribute_error("pattern", fmt::format("expected a regular expression of RE2, found "
                                                  "'{}': {}",
                                                  pattern, regex->error()));
  return regex;
}

Status match_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const auto regex, compiled(context.attributes()));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kBool, input->dims));
  const auto* texts = input->as<std::string>();
  context.parallel_for(input->numel(), 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      output.as<bool>()[i] = RE2::FullMatch(texts[i], *regex);
  });
  return {};
}

Status infer_match(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kStringType));
  TESSERA_TRY(compiled(context.attributes).map([](const auto&) {}));
  set_output(context, 0, DType::kBool, context.inputs[0].type.shape);
  return {};
}

}  // namespace

std::vector<OpSchema> regex_ops() {
  OpSchema match;
  match.name = "RegexFullMatch";
  match.unspecified = "bytes that are not UTF-8 match nothing";
  match.versions = {20};
  match.inputs = {required("X", "T1")};
  match.outputs = {required("Y", "T2")};
  match.attributes = {attr("pattern", AttrType::kString)};
  match.type_variables = {{"T1", kStringType}, {"T2", kBoolType}};
  match.structure = Structure::kElementwise;
  match.infer = infer_match;
  match.kernel = match_kernel;
  return {match};
}

}  // namespace tessera::ops
