#include "random_models/recipes.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/op_table.h"

namespace tessera::random_models {
namespace {

constexpr std::string_view kSequences = "sequences and optionals: models are drawn over tensors";
constexpr std::string_view kStrings = "strings: models are drawn over numbers";
constexpr std::string_view kRandom = "random numbers: two runs differ";
constexpr std::string_view kRare = "no recipe yet: held against ONNX's own cases alone";
constexpr std::string_view kBodies = "control flow: its bodies are graphs";

constexpr Untested kUntested[] = {
    {"AffineGrid", kRare},
    {"Bernoulli", kRandom},
    {"BitCast", "what one result may differ by makes another number of its bits"},
    {"BlackmanWindow", kRare},
    {"CausalConvWithState", "import makes Concat, Conv and Slice of it"},
    {"CenterCropPad", kRare},
    {"Col2Im", kRare},
    {"ConcatFromSequence", kSequences},
    {"DFT", kRare},
    {"DeformConv", kRare},
    {"Det", kRare},
    {"GridSample", kRare},
    {"HammingWindow", kRare},
    {"HannWindow", kRare},
    {"If", kBodies},
    {"LinearAttention", kRare},
    {"Loop", kBodies},
    {"MaxUnpool", kRare},
    {"MelWeightMatrix", kRare},
    {"Multinomial", kRandom},
    {"NegativeLogLikelihoodLoss", kRare},
    {"NonMaxSuppression", "its boxes and scores make sense together only"},
    {"Optional", kSequences},
    {"OptionalGetElement", kSequences},
    {"OptionalHasElement", kSequences},
    {"RandomNormal", kRandom},
    {"RandomNormalLike", kRandom},
    {"RandomUniform", kRandom},
    {"RandomUniformLike", kRandom},
    {"RegexFullMatch", kStrings},
    {"RoiAlign", kRare},
    {"STFT", kRare},
    {"Scan", kBodies},
    {"Scatter", "the newest opset has ScatterElements instead"},
    {"SequenceAt", kSequences},
    {"SequenceConstruct", kSequences},
    {"SequenceEmpty", kSequences},
    {"SequenceErase", kSequences},
    {"SequenceInsert", kSequences},
    {"SequenceLength", kSequences},
    {"SequenceMap", kBodies},
    {"SimplifiedLayerNormalization", "import makes RMSNormalization of it"},
    {"SoftmaxCrossEntropyLoss", kRare},
    {"SplitToSequence", kSequences},
    {"StringConcat", kStrings},
    {"StringNormalizer", kStrings},
    {"StringSplit", kStrings},
    {"SwiGLU", "import makes Swish and Mul of it"},
    {"TensorScatter", kRare},
    {"TfIdfVectorizer", "its pools and positions make sense together only"},
    {"Upsample", "the newest opset has Resize instead"},
};

}  // namespace

const std::vector<Recipe>& all_recipes() {
  static const std::vector<Recipe> recipes = [] {
    std::vector<Recipe> all;
    for (const auto group :
         {elementwise_recipes(), movement_recipes(), view_recipes(), reduce_recipes(),
          window_recipes(), product_recipes(), quantized_recipes()})
      all.insert(all.end(), group.begin(), group.end());
    std::ranges::sort(all, {}, &Recipe::op);
    return all;
  }();
  return recipes;
}

std::span<const Untested> untested_operators() {
  return kUntested;
}

std::vector<DType> key_dtypes(const Recipe& recipe) {
  const ops::OpSchema* op = ops::find_op("", recipe.op);
  TESSERA_CHECK(op != nullptr);
  const auto& key = recipe.key_input < 0 ? op->outputs.front()
                                         : op->inputs[static_cast<std::size_t>(recipe.key_input)];
  std::vector<DType> dtypes;
  for (const DType dtype : kDrawnDtypes) {
    const auto allows = [&](const ops::TypeVariable& variable) {
      return variable.name == key.type && (variable.allowed & ops::dtype_bit(dtype)) == 0;
    };
    if (std::ranges::none_of(op->type_variables, allows)) dtypes.push_back(dtype);
  }
  return dtypes;
}

std::vector<std::int64_t> some_axes(Draft& draft, std::size_t rank, std::size_t at_least) {
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  for (std::size_t i = axes.size(); i > 1; --i)
    std::swap(axes[i - 1], axes[draft.random().index(i)]);
  const auto kept = draft.random().integer(static_cast<std::int64_t>(std::min(at_least, rank)),
                                           static_cast<std::int64_t>(rank));
  axes.resize(static_cast<std::size_t>(kept));
  for (std::int64_t& axis : axes)
    if (draft.random().chance(0.3)) axis -= static_cast<std::int64_t>(rank);
  return axes;
}

}  // namespace tessera::random_models
