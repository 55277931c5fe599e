// Operators on strings: StringConcat, StringSplit, StringNormalizer. Comparisons and operators that
// move elements stand elsewhere; they take strings as well.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ops/elementwise/elementwise_util.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/schema_util.h"
#include "ops/sequence/unicode.h"

namespace tessera::ops {
namespace {

// ---- StringConcat
// -------------------------------------------------------------------------------------------------

Status concat_kernel(KernelContext& context) {
  return binary_kernel<Types<std::string>>(
      context, [](const std::string& x, const std::string& y) { return x + y; });
}

Status infer_concat(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kStringType));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  return infer_broadcast(context);
}

// ---- StringSplit
// -------------------------------------------------------------------------------------------------

// At most `limit` splits from the left; negative: as many as there are. White space at both ends
// goes.
std::vector<std::string> split_at_spaces(std::string_view text, std::int64_t limit) {
  std::vector<std::string> parts;
  const char* begin = nullptr;  // of the part that is being read
  const char* end = nullptr;    // of its last character that is no white space
  while (!text.empty()) {
    const char* at = text.data();
    if (!is_space_char(take_char(text))) {
      if (begin == nullptr) begin = at;
      end = text.data();
    } else if (begin != nullptr && static_cast<std::int64_t>(parts.size()) != limit) {
      parts.emplace_back(begin, end);
      begin = nullptr;
    }
  }
  if (begin != nullptr) parts.emplace_back(begin, end);
  return parts;
}

// A text of no characters has no parts.
std::vector<std::string> split_at_delimiter(std::string_view text, std::string_view delimiter,
                                            std::int64_t limit) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  while (static_cast<std::int64_t>(parts.size()) != limit) {
    const std::size_t at = text.find(delimiter);
    if (at == std::string_view::npos) break;
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
  }
  parts.emplace_back(text);
  return parts;
}

// The parts of each text in a row of their own; rows are as long as the longest, the rest empty.
Status split_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const std::string delimiter = context.attributes().get_string("delimiter", "");
  const std::int64_t limit = context.attributes().get_int("maxsplit", -1);
  std::vector<std::vector<std::string>> rows;
  std::size_t longest = 0;
  for (std::int64_t i = 0; i < input->numel(); ++i) {
    const std::string& text = input->as<std::string>()[i];
    rows.push_back(delimiter.empty() ? split_at_spaces(text, limit)
                                     : split_at_delimiter(text, delimiter, limit));
    longest = std::max(longest, rows.back().size());
  }
  Dims dims = input->dims;
  dims.push_back(static_cast<std::int64_t>(longest));
  TESSERA_ASSIGN(const MutableTensorView parts, context.output(0, DType::kString, dims));
  std::string* row = parts.as<std::string>();
  for (const auto& texts : rows) {
    std::fill(std::copy(texts.begin(), texts.end(), row), row + longest, std::string());
    row += longest;
  }
  if (context.output_count() < 2) return {};
  TESSERA_ASSIGN(const MutableTensorView counts, context.output(1, DType::kInt64, input->dims));
  std::transform(rows.begin(), rows.end(), counts.as<std::int64_t>(),
                 [](const auto& texts) { return static_cast<std::int64_t>(texts.size()); });
  return {};
}

Status infer_split(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kStringType));
  std::optional<Shape> shape = context.inputs[0].type.shape;
  set_output(context, 1, DType::kInt64, shape);
  if (shape) shape->push_back(context.fresh_symbol("substrings"));
  set_output(context, 0, DType::kString, std::move(shape));
  return {};
}

// ---- StringNormalizer
// -------------------------------------------------------------------------------------------------

std::vector<std::string> stop_words(const Attributes& attributes) {
  const AttributeValue* value = attributes.find("stopwords");
  const auto* words = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  return words == nullptr ? std::vector<std::string>() : *words;
}

std::string locale_of(const Attributes& attributes) {
  return attributes.get_string("locale", "en_US");
}

Status check_case_action(const Attributes& attributes) {
  const std::string action = attributes.get_string("case_change_action", "NONE");
  if (action == "NONE" || action == "LOWER" || action == "UPPER") return {};
  return attribute_error("case_change_action",
                         fmt::format("expected 'NONE', 'LOWER' or 'UPPER', found '{}'", action));
}

// [C] or [1, C].
bool is_row(const Dims& dims) {
  return dims.size() == 1 || (dims.size() == 2 && dims[0] == 1);
}

std::vector<std::string> without_stop_words(const TensorView& input, const Attributes& attributes) {
  const bool exact = attributes.get_int("is_case_sensitive", 0) != 0;
  const std::string locale = locale_of(attributes);
  const auto form = [&](const std::string& text) {
    return exact ? text : lower_text(text, locale);
  };
  std::set<std::string> stops;
  for (const std::string& word : stop_words(attributes)) stops.insert(form(word));
  std::vector<std::string> kept;
  std::copy_if(input.as<std::string>(), input.as<std::string>() + input.numel(),
               std::back_inserter(kept),
               [&](const std::string& text) { return !stops.contains(form(text)); });
  if (kept.empty()) kept.emplace_back();  // where none is left there is one empty text
  return kept;
}

Status normalizer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_TRY(check_case_action(context.attributes()));
  if (!is_row(input->dims)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("StringNormalizer: expected dims [C] or [1, C], found {}",
                            to_string(input->dims)));
  }
  std::vector<std::string> kept = without_stop_words(*input, context.attributes());
  const std::string action = context.attributes().get_string("case_change_action", "NONE");
  const std::string locale = locale_of(context.attributes());
  for (std::string& text : kept) {
    if (action == "LOWER") text = lower_text(text, locale);
    if (action == "UPPER") text = upper_text(text, locale);
  }
  Dims dims = input->dims;
  dims.back() = static_cast<std::int64_t>(kept.size());
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kString, dims));
  std::move(kept.begin(), kept.end(), output.as<std::string>());
  return {};
}

Status infer_normalizer(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kStringType));
  TESSERA_TRY(check_case_action(context.attributes));
  std::optional<Shape> shape = context.inputs[0].type.shape;
  if (shape) {
    const bool is_row =
        shape->size() == 1 || (shape->size() == 2 && shape->front().constant().value_or(1) == 1);
    if (!is_row)
      return input_error(context, 0,
                         fmt::format("expected dims [C] or [1, C], found {}", to_string(*shape)));
    const auto count = shape->back().constant();
    const bool all_stay = stop_words(context.attributes).empty() && count && *count > 0;
    if (!all_stay) shape->back() = context.fresh_symbol("kept");
    if (shape->size() == 2) shape->front() = Dim(1);
  }
  set_output(context, 0, DType::kString, std::move(shape));
  return {};
}

}  // namespace

std::vector<OpSchema> text_ops() {
  OpSchema concat;
  concat.name = "StringConcat";
  concat.versions = {20};
  concat.inputs = {required("X", "T"), required("Y", "T")};
  concat.outputs = {required("Z", "T")};
  concat.type_variables = {{"T", kStringType}};
  concat.structure = Structure::kElementwise;
  concat.infer = infer_concat;
  concat.kernel = concat_kernel;

  OpSchema split;
  split.name = "StringSplit";
  split.unspecified =
      "white space is what Unicode calls so, and U+001C to U+001F; a text without characters has "
      "no parts; a negative "
      "maxsplit is no limit";
  split.versions = {20};
  split.inputs = {required("X", "T1")};
  split.outputs = {required("Y", "T1"), optional("Z", "T3")};
  split.attributes = {attr("delimiter", AttrType::kString), attr("maxsplit", AttrType::kInt)};
  split.type_variables = {{"T1", kStringType}, {"T3", kInt64Type}};
  split.infer = infer_split;
  split.kernel = split_kernel;
  split.data_dependent_shape = true;

  OpSchema normalizer;
  normalizer.name = "StringNormalizer";
  normalizer.unspecified =
      "case changes as Unicode has it for whole texts; a locale that ICU does not know is none; "
      "bytes that are not UTF-8 stay";
  normalizer.versions = {10};
  normalizer.inputs = {required("X", "T")};
  normalizer.outputs = {required("Y", "T")};
  normalizer.attributes = {
      attr("case_change_action", AttrType::kString), attr("is_case_sensitive", AttrType::kInt),
      attr("locale", AttrType::kString), attr("stopwords", AttrType::kStrings)};
  normalizer.type_variables = {{"T", kStringType}};
  normalizer.infer = infer_normalizer;
  normalizer.kernel = normalizer_kernel;
  normalizer.data_dependent_shape = true;
  return {concat, split, normalizer};
}

}  // namespace tessera::ops
