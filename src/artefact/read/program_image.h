#pragma once

// What an artefact holds, as plain structures: the contract between the compiler, which writes it,
// and the runtime, which reads it. Large bytes live in content-addressed segments beside it
// (segment numbers below index ProgramImage::segments).

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/layout.h"
#include "base/shape.h"
#include "ops/attributes.h"

namespace tessera::artefact {

// A tensor as a kernel or a buffer sees it: logical shape (symbolic where sizes are), element type,
// order in memory.
struct TensorDecl {
  DType dtype = DType::kUndefined;
  Layout layout;
  Shape shape;
};

// One operation of the small program that a kernel computes. Operands are numbered: the kernel's
// inputs, then its constants, then the results of the steps in order (each step has `output_count`
// of them). -1: an omitted input.
struct KernelStep {
  std::string domain;
  std::string op_type;
  ops::Attributes attributes;
  std::vector<std::int32_t> inputs;
  std::uint32_t output_count = 1;
};

// What one kernel computes (steps) and how (kernel, options). The steps are the meaning: any
// backend could run them, and the reference does; the kernel name and options are the chosen way.
struct KernelSpec {
  std::string backend;  // whose run half loads it: "cpu", "reference", "simulated"
  std::string kernel;   // "onednn.conv", "simd.elementwise", ...
  std::uint32_t kernel_version =
      1;  // raised when its code changes; a part of price keys and of the manifest
  std::vector<TensorDecl> inputs;
  std::vector<TensorDecl> constants;             // baked in, in the layout that the kernel wants
  std::vector<std::uint32_t> constant_segments;  // one for each constant
  std::vector<TensorDecl> outputs;
  std::vector<KernelStep> steps;  // empty for a conversion: inputs[0] becomes outputs[0]
  std::vector<std::int32_t> output_operands;  // the operand number behind each output
  std::map<std::string, std::int64_t>
      options;  // the backend's own choices: chunks, block sizes, algorithm numbers
};

enum class BufferKind : std::uint8_t { kTemporary, kInput, kOutput, kConstant, kState };

// Storage of one value in one form. Temporaries lie in the arena of their memory space: the offset
// is the largest end of the buffers listed in `above` (0 where there are none), rounded up to 64;
// so a plan made at one point holds at every size.
struct BufferDecl {
  std::string value;         // the source value that it holds, for traces and messages
  std::uint32_t memory = 0;  // index into PlanImage::memories
  TensorDecl tensor;
  BufferKind kind = BufferKind::kTemporary;
  std::uint32_t segment = UINT32_MAX;   // kConstant: its bytes
  std::uint32_t alias_of = UINT32_MAX;  // shares the storage of this buffer (a view, or in place)
  Dim alias_offset_bytes;               // where in it
  // Temporaries and outputs: allocated when they are made, since only then their sizes are known.
  bool is_dynamic = false;
  std::vector<std::uint32_t> above;  // temporaries that it must lie above
};

// The instruction set. All of it stands in the schema; a reader refuses what it does not implement,
// naming it.
enum class Opcode : std::uint8_t {
  kCall,           // kernel: inputs -> outputs on `device`
  kConvert,        // kernel without steps: one form of a value -> another on the same memory
  kTransfer,       // inputs[0] -> outputs[0] between two memories, same layout and dtype
  kWait,           // until `device` has finished what was issued
  kBranch,         // If: bodies[0] or bodies[1] by inputs[0]
  kLoop,           // Loop, Scan: bodies[0] until the trip count or the condition ends it
  kEvaluateShape,  // binds the symbols that outputs[0]'s dims define
  kAllocate,       // storage of outputs[0] from the bounded pool, its size known only now
  kWriteBack,      // copies the new state inputs[0] over the state outputs[0]
};

// Along which axis a Scan takes or stacks slices; negative ones count from the back.
struct ScanAxis {
  std::int64_t axis = 0;
  bool reverse = false;
};

// What a branch or a loop does with its operands.
//   branch      inputs: condition, captures of bodies[0], captures of bodies[1]
//   loop        inputs: [trip count], [condition], carried, captures; the body takes the iteration
//               number, the condition, carried, captures, and gives the condition, carried, slices
//   scan        inputs: carried, scanned, captures; the body takes carried, slices, captures, and
//               gives carried, slices
struct ControlDecl {
  bool is_scan = false;
  bool has_trips = false;
  bool has_condition = false;
  std::uint32_t carried = 0;
  std::vector<ScanAxis> scan_inputs;
  std::vector<ScanAxis> scan_outputs;
  std::vector<std::uint32_t> kept;  // for each output: which result it is; the others are dropped
};

struct Instruction {
  Opcode opcode = Opcode::kCall;
  std::uint32_t device = 0;           // index into PlanImage::devices
  std::uint32_t kernel = UINT32_MAX;  // index into ProgramImage::kernels
  std::vector<std::uint32_t> inputs;  // buffers of the method; UINT32_MAX never occurs
  std::vector<std::uint32_t> outputs;
  std::vector<std::uint32_t> bodies;  // kBranch, kLoop: later methods of the plan
  ControlDecl control;                // kBranch, kLoop
  std::uint32_t region = UINT32_MAX;
  std::string label;                      // the first source node, or what is converted
  std::vector<std::string> source_nodes;  // every source node that this instruction computes
  double predicted_us = 0;
};

struct InterfaceDecl {
  std::string name;
  std::uint32_t buffer = 0;
  ValueType type;
};

struct StateDecl {
  std::string input;
  std::string output;
  std::uint32_t initial_segment = UINT32_MAX;  // none: zeros
};

struct MethodImage {
  std::string name;
  std::vector<InterfaceDecl> inputs;
  std::vector<InterfaceDecl> outputs;
  std::vector<StateDecl> states;
  std::vector<BufferDecl> buffers;
  std::vector<Instruction> instructions;
  SymbolTable symbols;
  SymbolBindings priced_at;  // the point that the plan was priced at
};

struct DeviceDecl {
  std::string name;
  std::string backend;  // "cpu", "reference", "simulated"
  std::uint32_t memory = 0;
  std::string profile;  // its profile as JSON, for simulated ones
  double launch_us = 0;
  double sync_us = 0;
};

struct MemoryDecl {
  std::string name;  // "host", or the device's name
};

// One way to run the program. plans[0] is the chosen one; a program for several devices also
// carries "cpu".
struct PlanImage {
  std::string name;                  // "main", "cpu"
  std::vector<MemoryDecl> memories;  // the first is host memory, where inputs and outputs lie
  std::vector<DeviceDecl> devices;
  std::vector<MethodImage> methods;
};

struct Segment {
  ContentHash hash;
  std::span<const std::byte> bytes;  // 64-byte aligned
};

struct ProgramImage {
  std::map<std::string, std::string> manifest;  // what the result depends on; see docs/artefact.md
  std::vector<KernelSpec> kernels;
  std::vector<PlanImage> plans;
  std::string evidence;  // the report's data as JSON, without what was executed
  std::vector<Segment> segments;
  std::vector<std::shared_ptr<const void>> owners;  // keep the segments' bytes alive
};

}  // namespace tessera::artefact
