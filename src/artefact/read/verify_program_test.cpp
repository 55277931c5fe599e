#include <gtest/gtest.h>

#include <functional>

#include "artefact/read/reader.h"
#include "testing/run_programs.h"

namespace tessera::artefact {
namespace {

using testing::ProgramBuilder;

// Buffers 0 x, 1 a temporary, 2 a constant w, 3 z; kernels 0 Relu(x), 1 Add(temporary, w).
ProgramBuilder sound_program() {
  ProgramBuilder program;
  const auto x = program.input("x", {2, 3});
  const auto r = program.temporary("r", {2, 3});
  const auto w = program.constant("w", {3}, std::vector<float>{1, 2, 3});
  const auto z = program.output("z", {2, 3});
  program.call("Relu", {x}, {r});
  program.call("Add", {r, w}, {z});
  return program;
}

// What the verifier says, without "damaged artefact: ", after `change`.
std::string error_after(const std::function<void(ProgramBuilder&)>& change) {
  ProgramBuilder program = sound_program();
  change(program);
  const auto status = verify_program(program.image);
  if (status) return "no error";
  const std::string text = status.error().to_string();
  constexpr std::string_view kPrefix = "damaged artefact: ";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

const std::string kBuffer = "plan 'main', method 'main', buffer ";
const std::string kInstruction = "plan 'main', method 'main', instruction ";

TEST(VerifyProgram, AcceptsASoundProgram) {
  EXPECT_EQ(error_after([](auto&) {}), "no error");
  EXPECT_EQ(verify_program({}).error().to_string(), "damaged artefact: no plan");
}

TEST(VerifyProgram, ChecksConstantsOfKernels) {
  const auto with_constant = [](ProgramBuilder& p, Shape shape, std::uint32_t segment) {
    p.image.kernels[0].constants = {{DType::kFp32, {}, std::move(shape)}};
    p.image.kernels[0].constant_segments = {segment};
    p.image.kernels[0].output_operands = {2};
  };
  EXPECT_EQ(error_after([&](auto& p) { with_constant(p, {3}, 0); }), "no error");
  EXPECT_EQ(error_after([&](auto& p) { with_constant(p, {2}, 0); }),
            "kernel 0: expected 8 bytes in its segment, found 12");
  EXPECT_EQ(error_after([&](auto& p) { with_constant(p, {3}, 7); }), "kernel 0: segment 7 of 1");
  EXPECT_EQ(error_after([&](auto& p) { with_constant(p, {Dim::symbol("n")}, 0); }),
            "kernel 0: a constant of symbolic shape [n]");
  EXPECT_EQ(error_after([&](auto& p) { with_constant(p, {INT64_MAX}, 0); }),
            "kernel 0: the bytes of fp32[9223372036854775807] exceed 63 bits");
  EXPECT_EQ(error_after([&](auto& p) { with_constant(p, {-3}, 0); }),
            "kernel 0: dim 0 of [-3] is negative; expected at least 0");
  EXPECT_EQ(error_after([](auto& p) {
              p.image.kernels[1].constant_segments = {0, 0};
            }),
            "kernel 1: 0 constants and 2 segments");
}

TEST(VerifyProgram, ChecksLayouts) {
  EXPECT_EQ(
      error_after([](auto& p) { p.image.kernels[0].inputs[0].layout = Layout::channels_last(4); }),
      "kernel 0: layout nhwc for rank 2");
  EXPECT_EQ(error_after([](auto& p) {
              p.image.kernels[0].outputs[0].layout = Layout{{1, 0}, {{2, 8}}};
            }),
            "kernel 0: layout order:1,0;blocks:2/8 for rank 2");
  EXPECT_EQ(error_after([](auto& p) { p.buffer(1).tensor.layout = Layout::channel_blocked(4, 8); }),
            kBuffer + "1: layout nChw8c for rank 2");
}

TEST(VerifyProgram, ChecksSteps) {
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].steps[0].inputs = {1}; }),
            "kernel 0: step Relu reads operand 1 of 1");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].steps[0].inputs = {-2}; }),
            "kernel 0: step Relu reads operand -2 of 1");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].steps[0].inputs = {0, -1}; }), "no error");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].steps[0].output_count = UINT32_MAX; }),
            "kernel 0: step Relu: expected at most 65536 outputs, found 4294967295");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].output_operands = {2}; }),
            "kernel 0: output operand 2 of 2");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].output_operands = {-1}; }),
            "kernel 0: output operand -1 of 2");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].output_operands = {}; }),
            "kernel 0: 1 outputs and 0 output operands");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[0].steps.clear(); }), "no error");
  EXPECT_EQ(error_after([](auto& p) { p.image.kernels[1].steps.clear(); }),
            "kernel 1: a conversion has one input and one output");
}

TEST(VerifyProgram, ChecksPlans) {
  EXPECT_EQ(error_after([](auto& p) { p.plan().devices[0].memory = 9; }),
            "device 'reference': memory 9 of 1");
  EXPECT_EQ(error_after([](auto& p) { p.plan().methods.clear(); }), "plan 'main': no method");
}

TEST(VerifyProgram, ChecksBuffers) {
  EXPECT_EQ(error_after([](auto& p) { p.buffer(1).memory = 4; }), kBuffer + "1: memory 4 of 1");
  EXPECT_EQ(error_after([](auto& p) { p.buffer(2).segment = 5; }), kBuffer + "2: segment 5 of 1");
  EXPECT_EQ(error_after([](auto& p) { p.buffer(2).tensor.shape = {4}; }),
            kBuffer + "2: expected 16 bytes in its segment, found 12");
  EXPECT_EQ(error_after([](auto& p) { p.buffer(1).alias_of = 4; }),
            kBuffer + "1: alias of buffer 4 of 4");
  EXPECT_EQ(error_after([](auto& p) { p.buffer(1).above = {4}; }),
            kBuffer + "1: above buffer 4 of 4");
  EXPECT_EQ(error_after([](auto& p) {
              p.buffer(1).kind = BufferKind::kState;
              p.buffer(1).segment = 8;
            }),
            kBuffer + "1: segment 8 of 1");
  EXPECT_EQ(error_after([](auto& p) {
              p.buffer(1).memory = p.simulated("npu");
              p.buffer(1).alias_of = 0;
            }),
            kBuffer + "1: an alias in memory 1 of a buffer in memory 0");
}

TEST(VerifyProgram, FindsCycles) {
  const auto cycle_through = [](std::uint32_t buffer) {
    return "plan 'main', method 'main': the place of buffer " + std::to_string(buffer) +
           " depends on itself";
  };
  EXPECT_EQ(error_after([](auto& p) { p.buffer(1).above = {1}; }), cycle_through(1));
  EXPECT_EQ(error_after([](auto& p) { p.buffer(1).alias_of = 1; }), cycle_through(1));
  const auto with_two_more = [](const std::function<void(ProgramBuilder&)>& change) {
    return error_after([&](auto& p) {
      p.temporary("p", {1});
      p.temporary("q", {1});
      change(p);
    });
  };
  EXPECT_EQ(with_two_more([](auto& p) {
              p.buffer(4).above = {1, 5};
              p.buffer(5).above = {1, 4};
            }),
            cycle_through(4));
  EXPECT_EQ(with_two_more([](auto& p) {
              p.buffer(4).above = {5};
              p.buffer(5).alias_of = 4;
            }),
            cycle_through(4));
  EXPECT_EQ(with_two_more([](auto& p) {  // a diamond has none
              p.buffer(4).above = {1, 5};
              p.buffer(5).above = {1};
            }),
            "no error");
}

TEST(VerifyProgram, ChecksInstructions) {
  const auto first = [](auto change) {
    return error_after([&](ProgramBuilder& p) { change(p.method().instructions[0]); });
  };
  EXPECT_EQ(first([](auto& i) { i.device = 1; }), kInstruction + "0: device 1 of 1");
  EXPECT_EQ(first([](auto& i) { i.inputs = {4}; }), kInstruction + "0: buffer 4 of 4");
  EXPECT_EQ(first([](auto& i) { i.outputs = {UINT32_MAX}; }),
            kInstruction + "0: buffer 4294967295 of 4");
  EXPECT_EQ(first([](auto& i) { i.bodies = {1}; }), kInstruction + "0: body 1 of 1");
  EXPECT_EQ(first([](auto& i) { i.kernel = 2; }), kInstruction + "0: kernel 2 of 2");
  EXPECT_EQ(first([](auto& i) { i.kernel = UINT32_MAX; }),
            kInstruction + "0: kernel 4294967295 of 2");
  EXPECT_EQ(first([](auto& i) { i.outputs = {}; }),
            kInstruction + "0: 1 inputs and 0 outputs for a kernel of 1 and 1");
  EXPECT_EQ(
      first([](auto& i) { i.inputs = {2}; }),
      kInstruction + "0: input 0: expected fp32 of rank 2 in nchw, found fp32 of rank 1 in nchw");
  EXPECT_EQ(
      error_after([](auto& p) { p.buffer(1).tensor.dtype = DType::kInt8; }),
      kInstruction + "0: output 0: expected fp32 of rank 2 in nchw, found int8 of rank 2 in nchw");
  EXPECT_EQ(error_after([](auto& p) {
              p.buffer(1).tensor.layout = Layout{{1, 0}, {}};
            }),
            kInstruction +
                "0: output 0: expected fp32 of rank 2 in nchw, found fp32 of rank 2 in order:1,0");
}

TEST(VerifyProgram, ChecksTransfers) {
  EXPECT_EQ(error_after([](auto& p) { p.add(Opcode::kTransfer, {0}, {1}); }), "no error");
  EXPECT_EQ(error_after([](auto& p) { p.add(Opcode::kTransfer, {0}, {}); }),
            kInstruction + "2: expected one input and one output, found 1 and 0");
  EXPECT_EQ(error_after([](auto& p) {
              p.add(Opcode::kWriteBack, {0, 1}, {1});
            }),
            kInstruction + "2: expected one input and one output, found 2 and 1");
  EXPECT_EQ(
      error_after([](auto& p) { p.add(Opcode::kWriteBack, {2}, {1}); }),
      kInstruction + "2: output 0: expected fp32 of rank 1 in nchw, found fp32 of rank 2 in nchw");
  EXPECT_EQ(error_after([](auto& p) { p.add(Opcode::kTransfer, {0}, {1}).kernel = 90; }),
            kInstruction + "2: kernel 90 for an instruction that has none");
}

TEST(VerifyProgram, ChecksInterfaces) {
  EXPECT_EQ(error_after([](auto& p) { p.method().inputs[0].buffer = 4; }),
            "input 'x': buffer 4 of 4");
  EXPECT_EQ(error_after([](auto& p) {
              p.method().outputs[0].type = ValueType::tensor(DType::kFp32, std::nullopt);
            }),
            "output 'z': expected a dynamic buffer for fp32[?]");
  EXPECT_EQ(error_after([](auto& p) {
              p.method().outputs[0].type = ValueType::sequence(p.method().inputs[0].type);
            }),
            "output 'z': expected a dynamic buffer for seq(fp32[2, 3])");
  EXPECT_EQ(error_after([](auto& p) {
              p.method().inputs[0].type = ValueType::tensor(DType::kFp32, Shape{2, 2});
            }),
            "input 'x': expected a buffer of fp32[2, 2] in nchw, found fp32[2, 3] in nchw");
  EXPECT_EQ(error_after([](auto& p) { p.method().inputs[0].type.dtype = DType::kInt8; }),
            "input 'x': expected a buffer of int8[2, 3] in nchw, found fp32[2, 3] in nchw");
  EXPECT_EQ(error_after([](auto& p) { p.method().inputs.clear(); }),
            kBuffer + "0: no input or output binds it");
  EXPECT_EQ(error_after([](auto& p) {
              p.method().states.push_back({"s", "t", 3});
            }),
            "state 's': segment 3 of 1");
}

}  // namespace
}  // namespace tessera::artefact
