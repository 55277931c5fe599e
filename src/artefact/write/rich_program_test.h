#pragma once

// An image that uses every field of the schema.

#include <string>
#include <vector>

#include "testing/run_programs.h"

namespace tessera::artefact {

inline ops::Attributes every_kind_of_attribute() {
  const std::vector<std::string> texts = {"a", "", "b\nc"};
  const std::vector<std::uint8_t> bytes(12345, 7);
  const Tensor strings = Tensor::of<std::string>(DType::kString, {3}, texts);
  const Tensor scalar = Tensor::of<float>(DType::kFp32, {}, std::vector<float>{2.5F});
  ops::Attributes attributes;
  attributes.set("a_int", std::int64_t{-5});
  attributes.set("b_float", 0.1F);
  attributes.set("c_text", std::string("reflect"));
  attributes.set("d_tensor", Tensor::of<std::uint8_t>(DType::kUInt8, {12345}, bytes));
  attributes.set("e_type",
                 ValueType::sequence(ValueType::tensor(DType::kFp16, Shape{Dim::symbol("n"), 3})));
  attributes.set("f_ints", std::vector<std::int64_t>{1, -1, INT64_MAX});
  attributes.set("g_floats", std::vector<float>{0, -0.5F});
  attributes.set("h_texts", texts);
  attributes.set("i_tensors",
                 std::vector<Tensor>{strings, scalar, *Tensor::zeros(DType::kInt4, {3}),
                                     *Tensor::zeros(DType::kInt64, {0, 2})});
  attributes.set("j_string_tensor", strings);
  return attributes;
}

// A loop over the fp32[4] `carried` with the capture `w`, as the last instruction, and its body.
inline void add_loop(PlanImage& plan, std::uint32_t carried, std::uint32_t w) {
  MethodImage& method = plan.methods.front();
  const auto add = [](MethodImage& to, const std::string& name, BufferKind kind, DType dtype,
                      const Shape& shape, bool is_dynamic) {
    BufferDecl decl;
    decl.value = name;
    decl.tensor = {dtype, Layout::row_major(), shape};
    decl.kind = kind;
    decl.is_dynamic = is_dynamic;
    to.buffers.push_back(std::move(decl));
    return static_cast<std::uint32_t>(to.buffers.size() - 1);
  };
  MethodImage body;
  body.name = "loop/body";
  const auto interface = [&](std::vector<InterfaceDecl>& list, const std::string& name,
                             BufferKind kind, DType dtype, const Shape& shape) {
    const bool is_dynamic = kind == BufferKind::kOutput;
    list.push_back(
        {name, add(body, name, kind, dtype, shape, is_dynamic), ValueType::tensor(dtype, shape)});
  };
  interface(body.inputs, "i", BufferKind::kInput, DType::kInt64, {});
  interface(body.inputs, "go", BufferKind::kInput, DType::kBool, {});
  interface(body.inputs, "v", BufferKind::kInput, DType::kFp32, {4});
  interface(body.inputs, "w", BufferKind::kInput, DType::kFp32, {5});
  interface(body.outputs, "go_on", BufferKind::kOutput, DType::kBool, {});
  interface(body.outputs, "v_next", BufferKind::kOutput, DType::kFp32, {4});
  interface(body.outputs, "slice", BufferKind::kOutput, DType::kFp32, {4});
  Instruction loop;
  loop.opcode = Opcode::kLoop;
  loop.inputs = {add(method, "trips", BufferKind::kTemporary, DType::kInt64, {}, false),
                 add(method, "goes", BufferKind::kTemporary, DType::kBool, {}, false), carried, w};
  loop.outputs = {
      add(method, "last", BufferKind::kTemporary, DType::kFp32, {4}, true),
      add(method, "all", BufferKind::kTemporary, DType::kFp32, {4, Dim::symbol("k")}, true)};
  loop.bodies = {static_cast<std::uint32_t>(plan.methods.size())};
  loop.control.has_trips = true;
  loop.control.has_condition = true;
  loop.control.carried = 1;
  loop.control.scan_outputs = {{-1, true}};
  loop.control.kept = {0, 1};
  method.instructions.push_back(std::move(loop));
  plan.methods.push_back(std::move(body));
}

inline testing::ProgramBuilder rich_program() {
  testing::ProgramBuilder program;
  const Dim n = Dim::symbol("n");
  const Shape shape = {n, 16, 8, 8};
  const auto npu = program.simulated("npu");
  program.plan().devices[npu].profile = R"({"name": "npu"})";
  program.plan().devices[npu].launch_us = 20.5;
  program.plan().devices[npu].sync_us = 30;
  const auto x = program.input("x", shape);
  const auto moved = program.temporary("moved", shape, npu);
  const auto packed = program.temporary("packed", shape, npu);
  const auto blocked = program.temporary("blocked", shape, npu);
  const auto half = program.temporary("half", {n, 16, 8, 4}, npu);
  const auto state = program.add_buffer("past", BufferKind::kState, {4});
  const auto next = program.temporary("next", {4});
  const auto w = program.constant("w", {5}, std::vector<float>{1, 2, 3, 4, 5});
  program.buffer(packed).tensor = {DType::kFp16, Layout::channels_last(4), shape};
  program.buffer(packed).above = {moved};
  program.buffer(blocked).tensor = {DType::kFp16, Layout::channel_blocked(4, 8), shape};
  program.buffer(blocked).above = {moved, packed};
  program.buffer(half).alias_of = moved;
  program.buffer(half).alias_offset_bytes = n * Dim(16) + Dim(64);
  program.buffer(state).segment = program.segment(std::vector<float>{1, 1, 2, 3});
  const auto convert = [&](std::uint32_t from, std::uint32_t to) {
    KernelSpec spec;
    spec.backend = "simulated";
    spec.kernel = "convert";
    spec.kernel_version = 3;
    spec.inputs = {program.buffer(from).tensor};
    spec.outputs = {program.buffer(to).tensor};
    program.call_kernel(std::move(spec), {from}, {to}, npu).opcode = Opcode::kConvert;
  };
  auto& transfer = program.add(Opcode::kTransfer, {x}, {moved}, npu);
  transfer.predicted_us = 12.25;
  transfer.region = 1;
  convert(moved, packed);
  convert(packed, blocked);
  program.add(Opcode::kWait, {}, {}, npu);
  program.call("Add", {state, state}, {next}, 0, every_kind_of_attribute());
  KernelSpec& spec = program.image.kernels.back();
  spec.constants = {{DType::kFp32, Layout::row_major(), {37}}};
  spec.constant_segments = {program.segment(std::vector<float>(37, 0.5F))};
  spec.steps[0].domain = "ai.example";
  spec.steps[0].inputs = {0, -1, 2};
  spec.steps.push_back({"", "Split", {}, {3}, 2});
  spec.output_operands = {5};
  spec.options = {{"chunks", -4}, {"block", 8}};
  program.method().instructions.back().source_nodes = {"conv_1", "relu_1"};
  program.add(Opcode::kWriteBack, {next}, {state});
  program.call("Identity", {w}, {program.output("z", {5})});
  program.method().states = {{"past", "present", program.buffer(state).segment},
                             {"other", "other_out", UINT32_MAX}};
  program.method().symbols["n"] = {1, 64};
  program.method().priced_at["n"] = 4;
  PlanImage other = program.plan();
  other.name = "cpu";
  add_loop(other, next, w);
  program.image.plans.push_back(std::move(other));
  program.image.manifest = {{"model", "00ff"}, {"tessera", "0.1.0"}};
  program.image.evidence = R"({"schema":"tessera.report/1.0"})";
  return program;
}

}  // namespace tessera::artefact
