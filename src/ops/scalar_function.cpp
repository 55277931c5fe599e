#include "ops/scalar_function.h"

#include <string_view>

#include "base/error.h"

namespace tessera::ops {

int arity(ScalarFunction function) {
  switch (function) {
#define TESSERA_CASE(name, count) \
  case ScalarFunction::k##name: return count;
    TESSERA_SCALAR_FUNCTIONS(TESSERA_CASE)
#undef TESSERA_CASE
  }
  return 0;
}

std::optional<ScalarFunction> scalar_function(const OpSchema& op, const Attributes& attributes) {
  if (op.structure != Structure::kElementwise) return std::nullopt;
  if (op.domain == "com.microsoft" && op.name == "QuickGelu") return ScalarFunction::kQuickGelu;
  if (!op.domain.empty()) return std::nullopt;
  if (op.name == "Gelu") {
    return attributes.get_string("approximate", "none") == "tanh" ? ScalarFunction::kGeluTanh
                                                                  : ScalarFunction::kGelu;
  }
  if (op.name == "Mod" && attributes.get_int("fmod", 0) == 0) return std::nullopt;
  if (op.name == "Sum") return ScalarFunction::kAdd;
#define TESSERA_MATCH(name_, count) \
  if (op.name == #name_) return ScalarFunction::k##name_;
  TESSERA_SCALAR_FUNCTIONS(TESSERA_MATCH)
#undef TESSERA_MATCH
  return std::nullopt;
}

ScalarParams scalar_params(ScalarFunction function, const Attributes& attributes) {
  const auto alpha = [&](float fallback) { return attributes.get_float("alpha", fallback); };
  switch (function) {
    case ScalarFunction::kLeakyRelu: return {alpha(0.01F), 0};
    case ScalarFunction::kElu:
    case ScalarFunction::kCelu:
    case ScalarFunction::kThresholdedRelu:
    case ScalarFunction::kSwish: return {alpha(1.0F), 0};
    case ScalarFunction::kQuickGelu: return {alpha(1.702F), 0};
    case ScalarFunction::kSelu:
      return {alpha(1.67326319217681884765625F),
              attributes.get_float("gamma", 1.05070102214813232421875F)};
    case ScalarFunction::kHardSigmoid: return {alpha(0.2F), attributes.get_float("beta", 0.5F)};
    case ScalarFunction::kShrink:
      return {attributes.get_float("lambd", 0.5F), attributes.get_float("bias", 0.0F)};
    default: return {};
  }
}

float apply(ScalarFunction function, const float* args, const ScalarParams& params) {
  switch (function) {
#define TESSERA_CASE(name, count) \
  case ScalarFunction::k##name: return Scalar<ScalarFunction::k##name>::apply<float>(args, params);
    TESSERA_SCALAR_FUNCTIONS(TESSERA_CASE)
#undef TESSERA_CASE
  }
  TESSERA_CHECK(false);
  return 0;
}

}  // namespace tessera::ops
