// Sequences and optionals: kernels, inference, errors.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::attributes;
using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::known;
using testing::omitted;
using testing::tensor;
using testing::typed;
using testing::values;

RunValue of(Tensor value) {
  return RunValue::of(std::move(value));
}

RunValue sequence(const std::vector<Tensor>& tensors) {
  std::vector<RunValue> elements;
  for (const Tensor& element : tensors) elements.push_back(of(element));
  return RunValue::sequence(std::move(elements));
}

Tensor index(std::int64_t value) {
  return tensor<std::int64_t>({}, {value});
}

// An undefined tensor stands for an omitted input.
Result<RunValue> try_run(std::string_view name, const std::vector<RunValue>& inputs,
                         const testing::AttributeList& list = {}) {
  std::vector<const RunValue*> pointers;
  for (const RunValue& input : inputs)
    pointers.push_back(input.is_tensor() && !input.tensor.is_defined() ? nullptr : &input);
  TESSERA_ASSIGN(auto outputs, run_reference(testing::schema(name), attributes(list), pointers, 1));
  return std::move(outputs[0]);
}

RunValue run(std::string_view name, const std::vector<RunValue>& inputs,
             const testing::AttributeList& list = {}) {
  auto result = try_run(name, inputs, list);
  if (result) return *std::move(result);
  ADD_FAILURE() << name << ": " << result.error().to_string();
  return {};
}

std::string error_of(std::string_view name, const std::vector<RunValue>& inputs,
                     const testing::AttributeList& list = {}) {
  const auto result = try_run(name, inputs, list);
  return result ? "no error" : result.error().to_string();
}

// "[1 2] | [3]": the elements of float tensors; dims before them where they are not a vector's.
std::string text(const RunValue& value) {
  if (value.is_tensor()) {
    const Dims& dims = value.tensor.dims();
    return fmt::format("{}[{}]", dims.size() == 1 ? "" : to_string(dims),
                       fmt::join(values<float>(value.tensor), " "));
  }
  std::string out;
  for (const RunValue& element : value.elements) out += (out.empty() ? "" : " | ") + text(element);
  return (value.kind == ValueType::Kind::kSequence ? "seq(" : "opt(") + out + ")";
}

TEST(SequenceKernels, MakeChangeAndRead) {
  const RunValue two = run("SequenceConstruct", {of(floats({1, 2})), of(floats({3}))});
  EXPECT_EQ(text(two), "seq([1 2] | [3])");
  const RunValue more = of(floats({9}));
  EXPECT_EQ(text(run("SequenceInsert", {two, more})), "seq([1 2] | [3] | [9])");
  EXPECT_EQ(text(run("SequenceInsert", {two, more, of(index(0))})), "seq([9] | [1 2] | [3])");
  EXPECT_EQ(text(run("SequenceInsert", {two, more, of(index(2))})), "seq([1 2] | [3] | [9])");
  EXPECT_EQ(text(run("SequenceInsert", {two, more, of(index(-1))})), "seq([1 2] | [9] | [3])");
  EXPECT_EQ(text(run("SequenceInsert", {two, more, of(index(-2))})), "seq([9] | [1 2] | [3])");
  EXPECT_EQ(text(run("SequenceErase", {two})), "seq([1 2])");
  EXPECT_EQ(text(run("SequenceErase", {two, of(int64s({0}))})), "seq([3])");
  EXPECT_EQ(text(run("SequenceAt", {two, of(tensor<std::int32_t>({}, {-2}))})), "[1 2]");
  EXPECT_EQ(values<std::int64_t>(run("SequenceLength", {two}).tensor), testing::Ints{2});
  EXPECT_EQ(text(two), "seq([1 2] | [3])") << "inputs stay as they are";

  const RunValue none = run("SequenceEmpty", {}, {{"dtype", 7}});
  EXPECT_EQ(text(none), "seq()");
  EXPECT_EQ(values<std::int64_t>(run("SequenceLength", {none}).tensor), testing::Ints{0});
  EXPECT_EQ(text(run("SequenceInsert", {none, more, of(index(0))})), "seq([9])");
  EXPECT_EQ(text(run("Identity", {two})), "seq([1 2] | [3])");
}

TEST(SequenceKernels, NameWhatIsOutOfRange) {
  const RunValue two = sequence({floats({1}), floats({2})});
  const RunValue none = sequence({});
  EXPECT_EQ(error_of("SequenceAt", {two, of(index(2))}),
            "SequenceAt: input 'position': index out of range: expected a value from -2 to 1 for a "
            "sequence of 2, found 2");
  EXPECT_EQ(error_of("SequenceInsert", {two, of(floats({3})), of(index(-3))}),
            "SequenceInsert: input 'position': index out of range: expected a value from -2 to 2 "
            "for a sequence of 2, found -3");
  EXPECT_EQ(error_of("SequenceErase", {two, of(index(-3))}),
            "SequenceErase: input 'position': index out of range: expected a value from -2 to 1 "
            "for a sequence of 2, found -3");
  EXPECT_EQ(error_of("SequenceAt", {none, of(index(0))}),
            "SequenceAt: input 'position': index 0 is out of range: the sequence is empty");
  EXPECT_EQ(error_of("SequenceErase", {none}),
            "SequenceErase: expected a sequence with an element, found an empty one");
  EXPECT_EQ(error_of("SequenceAt", {two, of(int64s({0, 1}))}),
            "SequenceAt: input 'position': expected one element, found int64[2]");
  EXPECT_EQ(error_of("SequenceInsert", {two, of(int64s({1}))}),
            "SequenceInsert: input 'tensor': expected fp32 as the elements of the sequence have, "
            "found int64");
  EXPECT_EQ(error_of("SequenceLength", {of(floats({1}))}),
            "SequenceLength: input 0: expected a sequence, found fp32[1]");
  EXPECT_EQ(error_of("SequenceLength", {RunValue::optional({})}),
            "SequenceLength: input 0: expected a sequence, found an optional");
}

const Tensor& five_by_two() {
  static const Tensor x = tensor<float>({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  return x;
}

TEST(SplitToSequence, CutsPieces) {
  const RunValue x = of(five_by_two());
  EXPECT_EQ(text(run("SplitToSequence", {x, of(index(2))})),
            "seq([2, 2][0 1 2 3] | [2, 2][4 5 6 7] | [1, 2][8 9])");
  EXPECT_EQ(text(run("SplitToSequence", {x, of(int64s({1, 4}))}, {{"keepdims", 0}})),
            "seq([1, 2][0 1] | [4, 2][2 3 4 5 6 7 8 9])");
  EXPECT_EQ(text(run("SplitToSequence", {x}, {{"axis", -1}, {"keepdims", 0}})),
            "seq([0 2 4 6 8] | [1 3 5 7 9])");
  EXPECT_EQ(text(run("SplitToSequence", {x}, {{"axis", 1}})),
            "seq([5, 1][0 2 4 6 8] | [5, 1][1 3 5 7 9])");
  const RunValue words = of(tensor<std::string>({2}, {"a", "b"}));
  EXPECT_EQ(values<std::string>(run("SplitToSequence", {words}).elements[1].tensor),
            std::vector<std::string>{"b"});
  EXPECT_EQ(text(run("SplitToSequence", {of(*Tensor::zeros(DType::kFp32, {0, 2}))})), "seq()");
}

TEST(SplitToSequence, RefusesSizesThatDoNotFit) {
  const RunValue x = of(five_by_two());
  EXPECT_EQ(error_of("SplitToSequence", {x, of(int64s({2, 2}))}),
            "SplitToSequence: input 'split': expected sizes of 0 or more whose sum is 5, found "
            "[2, 2]");
  EXPECT_EQ(error_of("SplitToSequence", {x, of(int64s({-1, 6}))}),
            "SplitToSequence: input 'split': expected sizes of 0 or more whose sum is 5, found "
            "[-1, 6]");
  EXPECT_EQ(error_of("SplitToSequence", {x, of(index(0))}),
            "SplitToSequence: input 'split': expected a size of 1 or more, found 0");
  EXPECT_EQ(error_of("SplitToSequence", {x}, {{"axis", 2}}),
            "attribute 'axis': expected a value from -2 to 1, found 2");
  EXPECT_EQ(error_of("SplitToSequence", {of(*Tensor::zeros(DType::kFp32, {1 << 30, 0}))}),
            "SplitToSequence: expected at most 4194304 pieces, found 1073741824");
}

TEST(ConcatFromSequence, JoinsAndStacks) {
  const RunValue pieces =
      sequence({tensor<float>({1, 2}, {1, 2}), tensor<float>({2, 2}, {3, 4, 5, 6})});
  EXPECT_EQ(text(run("ConcatFromSequence", {pieces}, {{"axis", 0}})), "[3, 2][1 2 3 4 5 6]");
  const RunValue rows = sequence({floats({1, 2}), floats({3, 4})});
  EXPECT_EQ(text(run("ConcatFromSequence", {rows}, {{"axis", -1}})), "[1 2 3 4]");
  EXPECT_EQ(text(run("ConcatFromSequence", {rows}, {{"axis", 0}, {"new_axis", 1}})),
            "[2, 2][1 2 3 4]");
  EXPECT_EQ(text(run("ConcatFromSequence", {rows}, {{"axis", -1}, {"new_axis", 1}})),
            "[2, 2][1 3 2 4]");
  EXPECT_EQ(error_of("ConcatFromSequence", {pieces}, {{"axis", 1}}),
            "ConcatFromSequence: element 1: expected fp32[1, 2] but for axis 1, found fp32[2, 2]");
  EXPECT_EQ(error_of("ConcatFromSequence", {pieces}, {{"axis", 0}, {"new_axis", 1}}),
            "ConcatFromSequence: element 1: expected fp32[1, 2], found fp32[2, 2]");
  EXPECT_EQ(error_of("ConcatFromSequence", {sequence({})}, {{"axis", 0}}),
            "ConcatFromSequence: expected a sequence with an element, found an empty one");
}

TEST(OptionalKernels, WrapAskAndOpen) {
  const RunValue x = of(floats({1, 2}));
  const RunValue wrapped = run("Optional", {x});
  EXPECT_EQ(text(wrapped), "opt([1 2])");
  const RunValue empty = run("Optional", {}, {{"type", typed("fp32[2]").type}});
  EXPECT_EQ(text(empty), "opt()");
  EXPECT_EQ(text(run("Optional", {sequence({floats({1})})})), "opt(seq([1]))");
  const auto has = [](const std::vector<RunValue>& inputs) -> bool {
    return values<bool>(run("OptionalHasElement", inputs).tensor)[0];
  };
  EXPECT_TRUE(has({wrapped}));
  EXPECT_FALSE(has({empty}));
  EXPECT_TRUE(has({x}));
  EXPECT_TRUE(has({sequence({})}));
  EXPECT_FALSE(has({}));
  EXPECT_EQ(text(run("OptionalGetElement", {wrapped})), "[1 2]");
  EXPECT_EQ(text(run("OptionalGetElement", {x})), "[1 2]");
  EXPECT_EQ(text(run("OptionalGetElement", {RunValue::optional({sequence({floats({1})})})})),
            "seq([1])");
  EXPECT_EQ(text(run("OptionalGetElement", {sequence({floats({1})})})), "seq([1])");
  EXPECT_EQ(error_of("OptionalGetElement", {empty}),
            "OptionalGetElement: expected an optional with an element, found an empty one");
  EXPECT_EQ(text(run("Identity", {empty})), "opt()");
}

// ---- Inference ----------------------------------------------------------------------------------

TEST(SequenceInference, ElementsHoldWhatAllHave) {
  EXPECT_EQ(infer_text("SequenceConstruct", {typed("fp32[n, 3]"), typed("fp32[n, 3]")}),
            "seq(fp32[n, 3])");
  EXPECT_EQ(infer_text("SequenceConstruct", {typed("fp32[2, 3]"), typed("fp32[4, 3]")}),
            "seq(fp32[_0, 3])");
  EXPECT_EQ(infer_text("SequenceConstruct", {typed("fp32[2, 3]"), typed("fp32[3]")}),
            "seq(fp32[?])");
  EXPECT_EQ(infer_text("SequenceConstruct", {typed("fp32[2]"), typed("int64[2]")}),
            "input 'inputs[1]': expected fp32 as input 'inputs[0]' has, found int64");
  EXPECT_EQ(infer_text("SequenceConstruct", {}),
            "input 'inputs[0]': expected a tensor, found none");
  EXPECT_EQ(infer_text("SequenceEmpty", {}), "seq(fp32[?])");
  EXPECT_EQ(infer_text("SequenceEmpty", {}, {{"dtype", 8}}), "seq(string[?])");
  EXPECT_EQ(infer_text("SequenceEmpty", {}, {{"dtype", 99}}),
            "attribute 'dtype': expected a known element type, found 99");
  EXPECT_EQ(infer_text("SequenceInsert", {typed("seq(fp32[2])"), typed("fp32[3]")}),
            "seq(fp32[_0])");
  EXPECT_EQ(infer_text("SequenceInsert", {typed("seq(fp32[2])"), typed("int64[3]")}),
            "input 'tensor': expected fp32 as the elements of input 'input_sequence' have, found "
            "int64");
  EXPECT_EQ(infer_text("SequenceErase", {typed("seq(fp32[2])"), typed("int64[]")}), "seq(fp32[2])");
}

TEST(SequenceInference, AnElementHasSizesOfItsOwn) {
  EXPECT_EQ(infer_text("SequenceAt", {typed("seq(fp32[n, 3])"), typed("int64[]")}), "fp32[_0, 3]");
  EXPECT_EQ(infer_text("SequenceAt", {typed("seq(fp32[?])"), typed("int64[1]")}), "fp32[?]");
  EXPECT_EQ(infer_text("SequenceAt", {typed("fp32[3]"), typed("int64[]")}),
            "input 'input_sequence': expected a sequence, found fp32[3]");
  EXPECT_EQ(infer_text("SequenceAt", {typed("seq(fp32[3])"), typed("int64[2]")}),
            "input 'position': expected one element, found int64[2]");
  EXPECT_EQ(infer_text("SequenceLength", {typed("seq(fp32[3])")}), "int64[]");
  EXPECT_EQ(infer_text("ConcatFromSequence", {typed("seq(fp32[n, 3])")}, {{"axis", 0}}),
            "fp32[_1, 3]");
  EXPECT_EQ(
      infer_text("ConcatFromSequence", {typed("seq(fp32[4, 3])")}, {{"axis", -1}, {"new_axis", 1}}),
      "fp32[4, 3, _0]");
  EXPECT_EQ(infer_text("ConcatFromSequence", {typed("seq(fp32[4, 3])")}, {{"axis", 2}}),
            "attribute 'axis': expected a value from -2 to 1, found 2");
}

TEST(SequenceInference, PiecesOfASplit) {
  const auto x = typed("fp32[6, n]");
  EXPECT_EQ(infer_text("SplitToSequence", {x}), "seq(fp32[1, n])");
  EXPECT_EQ(infer_text("SplitToSequence", {x}, {{"keepdims", 0}, {"axis", 1}}), "seq(fp32[6])");
  EXPECT_EQ(infer_text("SplitToSequence", {x, known(index(2))}, {{"keepdims", 0}}),
            "seq(fp32[2, n])");
  EXPECT_EQ(infer_text("SplitToSequence", {x, known(index(4))}), "seq(fp32[_0, n])");
  EXPECT_EQ(infer_text("SplitToSequence", {x, known(int64s({3, 3}))}), "seq(fp32[3, n])");
  EXPECT_EQ(infer_text("SplitToSequence", {x, known(int64s({2, 4}))}), "seq(fp32[_0, n])");
  EXPECT_EQ(infer_text("SplitToSequence", {x, typed("int64[k]")}), "seq(fp32[_0, n])");
  EXPECT_EQ(infer_text("SplitToSequence", {x, known(index(0))}),
            "input 'split': expected sizes of 1 or more, found 0");
  EXPECT_EQ(infer_text("SplitToSequence", {x, known(int64s({-1, 7}))}),
            "input 'split': expected sizes of 0 or more, found -1");
  EXPECT_EQ(infer_text("SplitToSequence", {x, typed("int64[2, 2]")}),
            "input 'split': expected rank 0 or 1, found int64[2, 2]");
}

TEST(OptionalInference, WrapsAndOpens) {
  EXPECT_EQ(infer_text("Optional", {typed("fp32[n]")}), "opt(fp32[n])");
  EXPECT_EQ(infer_text("Optional", {}, {{"type", typed("seq(fp32[2])").type}}),
            "opt(seq(fp32[2]))");
  EXPECT_EQ(infer_text("Optional", {}),
            "attribute 'type': expected the type of the element, as there is no input");
  EXPECT_EQ(infer_text("Optional", {typed("opt(fp32[n])")}),
            "input 'input': expected a tensor or a sequence, found opt(fp32[n])");
  EXPECT_EQ(infer_text("Optional", {typed("fp32[n]")}, {{"type", typed("int64[2]").type}}),
            "input 'input': expected int64[2] as attribute 'type' says, found fp32[n]");
  EXPECT_EQ(infer_text("OptionalGetElement", {typed("opt(fp32[n])")}), "fp32[n]");
  EXPECT_EQ(infer_text("OptionalGetElement", {typed("seq(fp32[n])")}), "seq(fp32[n])");
  EXPECT_EQ(infer_text("OptionalHasElement", {typed("opt(fp32[n])")}), "bool[]");
  EXPECT_EQ(infer_text("OptionalHasElement", {typed("fp32[n]")}), "bool[] = [1]");
  EXPECT_EQ(infer_text("OptionalHasElement", {}), "bool[] = [0]");
}

}  // namespace
}  // namespace tessera::ops
