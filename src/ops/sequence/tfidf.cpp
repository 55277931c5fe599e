// TfIdfVectorizer: how often known n-grams stand in each row.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/nn/nn_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "TfIdfVectorizer";

struct Vocabulary {
  std::vector<std::int64_t> columns;  // of the output, by n-gram
  std::vector<std::int64_t> starts;   // where the n-grams of each length begin in the pool
  std::vector<float> weights;         // by n-gram; empty: all 1
  std::int64_t width = 0;             // columns of the output
  std::int64_t shortest = 1, longest = 1, skips = 0;
  bool counts = true;  // else: there or not
  bool weighted = false;
  std::int64_t pool_size = 0;
  const AttributeValue* pool = nullptr;
};

Status check_lengths(const Vocabulary& words) {
  if (words.shortest >= 1 && words.longest >= words.shortest && words.skips >= 0 &&
      words.skips <= INT32_MAX)
    return {};
  return nn::op_error(kOp, fmt::format("expected 1 <= min_gram_length <= max_gram_length and "
                                       "max_skip_count of 0 or more, found {}, {} and {}",
                                       words.shortest, words.longest, words.skips));
}

// Each length's part of the pool must hold whole n-grams, as many as have columns.
Status check_pool(const Vocabulary& words) {
  std::int64_t grams = 0;
  for (std::size_t i = 0; i < words.starts.size(); ++i) {
    const std::int64_t end = i + 1 < words.starts.size() ? words.starts[i + 1] : words.pool_size;
    const std::int64_t size = end - words.starts[i];
    const auto length = static_cast<std::int64_t>(i) + 1;
    if (words.starts[i] < 0 || size < 0 || size % length != 0)
      return attribute_error("ngram_counts",
                             fmt::format("expected rising positions of whole {}-grams in a pool of "
                                         "{}, found {}",
                                         length, words.pool_size, words.starts[i]));
    grams += size / length;
  }
  const auto columns = static_cast<std::int64_t>(words.columns.size());
  if (grams != columns)
    return attribute_error(
        "ngram_indexes",
        fmt::format("expected {} values, one for each n-gram, found {}", grams, columns));
  if (words.weights.empty() || words.weights.size() == words.columns.size()) return {};
  return attribute_error(
      "weights", fmt::format("expected {} values, found {}", columns, words.weights.size()));
}

Result<Vocabulary> read_vocabulary(const Attributes& attributes) {
  Vocabulary words{
      attributes.get_ints("ngram_indexes"),     attributes.get_ints("ngram_counts"),
      attributes.get_floats("weights"),         0,
      attributes.get_int("min_gram_length", 1), attributes.get_int("max_gram_length", 1),
      attributes.get_int("max_skip_count", 0)};
  TESSERA_TRY(check_lengths(words));
  const std::string mode = attributes.get_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return attribute_error("mode",
                           fmt::format("expected 'TF', 'IDF' or 'TFIDF', found '{}'", mode));
  words.counts = mode != "IDF";
  words.weighted = mode != "TF" && !words.weights.empty();
  const bool strings = attributes.has("pool_strings");
  if (strings == attributes.has("pool_int64s"))
    return nn::op_error(kOp, fmt::format("expected one of the attributes 'pool_strings' and "
                                         "'pool_int64s', found {}",
                                         strings ? "both" : "none"));
  words.pool = attributes.find(strings ? "pool_strings" : "pool_int64s");
  words.pool_size = std::visit(
      [](const auto& list) -> std::int64_t {
        if constexpr (requires { list.size(); }) return static_cast<std::int64_t>(list.size());
        return 0;
      },
      *words.pool);
  for (const std::int64_t column : words.columns) {
    if (column < 0 || column >= INT32_MAX)
      return attribute_error("ngram_indexes", fmt::format("expected 0 or more, found {}", column));
    words.width = std::max(words.width, column + 1);
  }
  TESSERA_TRY(check_pool(words));
  return words;
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const Vocabulary words, read_vocabulary(context.attributes));
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  std::optional<Shape> output;
  if (x->type.shape) {
    if (x->type.shape->size() > 2)
      return input_error(
          context, 0, fmt::format("expected rank 2 or less, found rank {}", x->type.shape->size()));
    if (x->type.shape->size() == 2)
      output = Shape{x->type.shape->front(), Dim(words.width)};
    else
      output = Shape{Dim(words.width)};
  }
  set_output(context, 0, DType::kFp32, std::move(output));
  return {};
}

// N-grams by their elements, to their numbers.
template <typename T>
using Grams = std::map<std::vector<T>, std::size_t>;

template <typename T>
Grams<T> grams_of(const Vocabulary& words, const std::vector<T>& pool) {
  Grams<T> grams;
  std::size_t number = 0;
  for (std::size_t i = 0; i < words.starts.size(); ++i) {
    const std::int64_t end = i + 1 < words.starts.size() ? words.starts[i + 1] : words.pool_size;
    const auto length = static_cast<std::int64_t>(i) + 1;
    for (std::int64_t at = words.starts[i]; at < end; at += length, ++number) {
      if (length < words.shortest || length > words.longest) continue;
      grams.emplace(std::vector<T>(pool.begin() + at, pool.begin() + at + length), number);
    }
  }
  return grams;
}

// Elements of a row with 0 up to max_skip_count left out between two of an n-gram; n-grams of one
// element count once.
template <typename T>
void count_grams(const Vocabulary& words, const Grams<T>& grams, const std::vector<T>& row,
                 std::vector<std::int64_t>& found) {
  const auto size = static_cast<std::int64_t>(row.size());
  for (std::int64_t step = 1; step <= words.skips + 1; ++step) {
    const std::int64_t shortest =
        step == 1 ? words.shortest : std::max<std::int64_t>(words.shortest, 2);
    for (std::int64_t length = shortest; length <= words.longest; ++length) {
      const std::int64_t last = size - (length - 1) * step;  // the first start that is too late
      if (length > 1 && (length - 1) * step >= size) break;
      for (std::int64_t start = 0; start < last; ++start) {
        std::vector<T> gram;
        for (std::int64_t i = 0; i < length; ++i)
          gram.push_back(row[static_cast<std::size_t>(start + i * step)]);
        const auto known = grams.find(gram);
        if (known != grams.end()) ++found[known->second];
      }
    }
  }
}

void write_row(const Vocabulary& words, const std::vector<std::int64_t>& found, float* to) {
  std::fill_n(to, words.width, 0.0F);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto count =
        static_cast<float>(words.counts ? found[i] : std::min<std::int64_t>(found[i], 1));
    to[words.columns[i]] += words.weighted ? count * words.weights[i] : count;
  }
}

template <typename T>
Status run(KernelContext& context, const Vocabulary& words, const std::vector<T>& pool,
           const std::vector<T>& elements, const Dims& dims) {
  const Grams<T> grams = grams_of(words, pool);
  const std::int64_t rows = dims.size() == 2 ? dims[0] : 1;
  const std::int64_t size = dims.empty() ? 1 : dims.back();
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, DType::kFp32,
                                dims.size() == 2 ? Dims{rows, words.width} : Dims{words.width}));
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::vector<T> row(elements.begin() + i * size, elements.begin() + (i + 1) * size);
    std::vector<std::int64_t> found(words.columns.size());
    count_grams(words, grams, row, found);
    write_row(words, found, output.as<float>() + i * words.width);
  }
  return {};
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const Vocabulary words, read_vocabulary(context.attributes()));
  if (x->dims.size() > 2)
    return nn::op_error(kOp, fmt::format("expected rank 2 or less, found {}", to_string(x->dims)));
  const auto* strings = std::get_if<std::vector<std::string>>(words.pool);
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(words.pool);
  if (strings != nullptr && x->dtype == DType::kString)
    return run(context, words, *strings,
               std::vector<std::string>(x->as<std::string>(), x->as<std::string>() + x->numel()),
               x->dims);
  if (numbers != nullptr && x->dtype != DType::kString)
    return run(context, words, *numbers, to_int64_vector(*x), x->dims);
  return nn::op_error(
      kOp, fmt::format("expected elements as the pool has, found {}", to_string(x->dtype)));
}

}  // namespace

std::vector<OpSchema> tfidf_ops() {
  OpSchema op;
  op.name = kOp;
  op.versions = {9};
  op.unspecified =
      "n-grams of one element are counted without skips; of those that stand twice in the pool the "
      "first counts; all that have one index add up";
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T1")};
  op.attributes = {required_attr("max_gram_length", AttrType::kInt),
                   required_attr("max_skip_count", AttrType::kInt),
                   required_attr("min_gram_length", AttrType::kInt),
                   required_attr("mode", AttrType::kString),
                   required_attr("ngram_counts", AttrType::kInts),
                   required_attr("ngram_indexes", AttrType::kInts),
                   attr("pool_int64s", AttrType::kInts),
                   attr("pool_strings", AttrType::kStrings),
                   attr("weights", AttrType::kFloats)};
  op.type_variables = {{"T", kIndexTypes | kStringType}, {"T1", kFp32Type}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return {op};
}

}  // namespace tessera::ops
