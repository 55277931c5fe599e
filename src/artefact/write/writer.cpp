#include "artefact/write/writer.h"

#include <cstring>
#include <utility>

#include "artefact/read/file_format.h"
#include "artefact/read/reader.h"
#include "base/checked.h"
#include "base/file.h"
#include "program_generated.h"

namespace tessera::artefact {
namespace {

template <typename T>
using Owned = std::unique_ptr<T>;

fb::TensorValueT pack_value(const Tensor& tensor) {
  fb::TensorValueT packed;
  packed.dtype = static_cast<std::uint8_t>(tensor.dtype());
  packed.dims = tensor.dims();
  if (tensor.dtype() == DType::kString) {
    const auto strings = tensor.span<std::string>();
    packed.strings.assign(strings.begin(), strings.end());
  } else {
    const auto* bytes = static_cast<const std::uint8_t*>(tensor.data());
    packed.bytes.assign(bytes, bytes + tensor.nbytes());
  }
  return packed;
}

// Packs one program; shared dimension expressions are stored once.
class Packer {
 public:
  fb::ProgramT pack(const ProgramImage& image);

 private:
  std::uint32_t dim(const Dim& value) {
    auto text = value.to_string();
    const auto [entry, is_new] =
        dim_numbers_.emplace(text, static_cast<std::uint32_t>(program_.dims.size()));
    if (is_new) program_.dims.push_back(std::move(text));
    return entry->second;
  }

  Owned<fb::TensorDeclT> decl(const TensorDecl& tensor) {
    auto packed = std::make_unique<fb::TensorDeclT>();
    packed->dtype = static_cast<std::uint8_t>(tensor.dtype);
    packed->layout = tensor.layout.to_string();
    for (const Dim& size : tensor.shape) packed->shape.push_back(dim(size));
    return packed;
  }

  std::vector<Owned<fb::TensorDeclT>> decls(const std::vector<TensorDecl>& tensors) {
    std::vector<Owned<fb::TensorDeclT>> packed;
    for (const TensorDecl& tensor : tensors) packed.push_back(decl(tensor));
    return packed;
  }

  static Owned<fb::AttributeT> attribute(const std::string& name, const ops::AttributeValue& value);
  Owned<fb::KernelT> kernel(const KernelSpec& spec);
  Owned<fb::BufferT> buffer(const BufferDecl& decl);
  static Owned<fb::InstructionT> instruction(const Instruction& instruction);
  Owned<fb::MethodT> method(const MethodImage& method);
  Owned<fb::PlanT> plan(const PlanImage& plan);

  fb::ProgramT program_;
  std::map<std::string, std::uint32_t> dim_numbers_;
};

Owned<fb::AttributeT> Packer::attribute(const std::string& name, const ops::AttributeValue& value) {
  auto packed = std::make_unique<fb::AttributeT>();
  packed->name = name;
  packed->kind = static_cast<std::uint8_t>(value.index());
  const auto add_tensor = [&](const Tensor& tensor) {
    packed->tensors.push_back(std::make_unique<fb::TensorValueT>(pack_value(tensor)));
  };
  if (const auto* i = std::get_if<std::int64_t>(&value)) packed->i = *i;
  if (const auto* f = std::get_if<float>(&value)) packed->f = *f;
  if (const auto* s = std::get_if<std::string>(&value)) packed->s = *s;
  if (const auto* tensor = std::get_if<Tensor>(&value)) add_tensor(*tensor);
  if (const auto* type = std::get_if<ValueType>(&value)) packed->s = type->to_string();
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) packed->ints = *ints;
  if (const auto* floats = std::get_if<std::vector<float>>(&value)) packed->floats = *floats;
  if (const auto* strings = std::get_if<std::vector<std::string>>(&value))
    packed->strings = *strings;
  if (const auto* tensors = std::get_if<std::vector<Tensor>>(&value))
    for (const Tensor& tensor : *tensors) add_tensor(tensor);
  return packed;
}

Owned<fb::KernelT> Packer::kernel(const KernelSpec& spec) {
  auto packed = std::make_unique<fb::KernelT>();
  packed->backend = spec.backend;
  packed->kernel = spec.kernel;
  packed->kernel_version = spec.kernel_version;
  packed->inputs = decls(spec.inputs);
  packed->constants = decls(spec.constants);
  packed->constant_segments = spec.constant_segments;
  packed->outputs = decls(spec.outputs);
  for (const KernelStep& step : spec.steps) {
    auto packed_step = std::make_unique<fb::StepT>();
    packed_step->domain = step.domain;
    packed_step->op_type = step.op_type;
    for (const auto& [name, value] : step.attributes.entries())
      packed_step->attributes.push_back(attribute(name, value));
    packed_step->inputs = step.inputs;
    packed_step->output_count = step.output_count;
    packed->steps.push_back(std::move(packed_step));
  }
  packed->output_operands = spec.output_operands;
  for (const auto& [key, value] : spec.options) {
    auto option = std::make_unique<fb::OptionT>();
    option->key = key;
    option->value = value;
    packed->options.push_back(std::move(option));
  }
  return packed;
}

Owned<fb::BufferT> Packer::buffer(const BufferDecl& decl_in) {
  auto packed = std::make_unique<fb::BufferT>();
  packed->value = decl_in.value;
  packed->memory = decl_in.memory;
  packed->tensor = decl(decl_in.tensor);
  packed->kind = static_cast<std::uint8_t>(decl_in.kind);
  packed->segment = decl_in.segment;
  packed->alias_of = decl_in.alias_of;
  packed->alias_offset = dim(decl_in.alias_offset_bytes);
  packed->above = decl_in.above;
  packed->is_dynamic = decl_in.is_dynamic;
  return packed;
}

std::vector<Owned<fb::ScanAxisT>> pack_axes(const std::vector<ScanAxis>& axes) {
  std::vector<Owned<fb::ScanAxisT>> packed;
  for (const ScanAxis& axis : axes) {
    packed.push_back(std::make_unique<fb::ScanAxisT>());
    packed.back()->axis = axis.axis;
    packed.back()->reverse = axis.reverse;
  }
  return packed;
}

Owned<fb::ControlT> pack_control(const ControlDecl& control) {
  auto packed = std::make_unique<fb::ControlT>();
  packed->is_scan = control.is_scan;
  packed->has_trips = control.has_trips;
  packed->has_condition = control.has_condition;
  packed->carried = control.carried;
  packed->scan_inputs = pack_axes(control.scan_inputs);
  packed->scan_outputs = pack_axes(control.scan_outputs);
  packed->kept = control.kept;
  return packed;
}

Owned<fb::InstructionT> Packer::instruction(const Instruction& in) {
  auto packed = std::make_unique<fb::InstructionT>();
  packed->opcode = static_cast<std::uint8_t>(in.opcode);
  packed->device = in.device;
  packed->kernel = in.kernel;
  packed->inputs = in.inputs;
  packed->outputs = in.outputs;
  packed->bodies = in.bodies;
  packed->region = in.region;
  packed->label = in.label;
  packed->source_nodes = in.source_nodes;
  packed->predicted_us = in.predicted_us;
  if (in.opcode == Opcode::kBranch || in.opcode == Opcode::kLoop)
    packed->control = pack_control(in.control);
  return packed;
}

std::vector<Owned<fb::InterfaceT>> pack_interfaces(const std::vector<InterfaceDecl>& decls) {
  std::vector<Owned<fb::InterfaceT>> packed;
  for (const InterfaceDecl& decl : decls) {
    auto entry = std::make_unique<fb::InterfaceT>();
    entry->name = decl.name;
    entry->buffer = decl.buffer;
    entry->type = decl.type.to_string();
    packed.push_back(std::move(entry));
  }
  return packed;
}

Owned<fb::MethodT> Packer::method(const MethodImage& in) {
  auto packed = std::make_unique<fb::MethodT>();
  packed->name = in.name;
  packed->inputs = pack_interfaces(in.inputs);
  packed->outputs = pack_interfaces(in.outputs);
  for (const StateDecl& state : in.states) {
    auto entry = std::make_unique<fb::StateT>();
    entry->input = state.input;
    entry->output = state.output;
    entry->initial_segment = state.initial_segment;
    packed->states.push_back(std::move(entry));
  }
  for (const BufferDecl& entry : in.buffers) packed->buffers.push_back(buffer(entry));
  for (const Instruction& entry : in.instructions)
    packed->instructions.push_back(instruction(entry));
  for (const auto& [name, range] : in.symbols) {
    auto entry = std::make_unique<fb::SymbolT>();
    entry->name = name;
    entry->min = range.min;
    entry->max = range.max;
    packed->symbols.push_back(std::move(entry));
  }
  for (const auto& [name, value] : in.priced_at) {
    auto entry = std::make_unique<fb::OptionT>();
    entry->key = name;
    entry->value = value;
    packed->priced_at.push_back(std::move(entry));
  }
  return packed;
}

Owned<fb::PlanT> Packer::plan(const PlanImage& in) {
  auto packed = std::make_unique<fb::PlanT>();
  packed->name = in.name;
  for (const MemoryDecl& memory : in.memories) packed->memories.push_back(memory.name);
  for (const DeviceDecl& device : in.devices) {
    auto entry = std::make_unique<fb::DeviceT>();
    entry->name = device.name;
    entry->backend = device.backend;
    entry->memory = device.memory;
    entry->profile = device.profile;
    entry->launch_us = device.launch_us;
    entry->sync_us = device.sync_us;
    packed->devices.push_back(std::move(entry));
  }
  for (const MethodImage& entry : in.methods) packed->methods.push_back(method(entry));
  return packed;
}

fb::ProgramT Packer::pack(const ProgramImage& image) {
  for (const auto& [key, value] : image.manifest) {
    auto entry = std::make_unique<fb::EntryT>();
    entry->key = key;
    entry->value = value;
    program_.manifest.push_back(std::move(entry));
  }
  for (const KernelSpec& spec : image.kernels) program_.kernels.push_back(kernel(spec));
  for (const PlanImage& entry : image.plans) program_.plans.push_back(plan(entry));
  program_.evidence = image.evidence;
  return std::move(program_);
}

// The metadata with the place of every segment. Segments follow the metadata, whose size their
// offsets do not change: offsets are relative to the end of the metadata, rounded up.
std::string pack_metadata(const ProgramImage& image) {
  fb::ProgramT program = Packer().pack(image);
  std::int64_t offset = 0;
  for (const Segment& segment : image.segments) {
    auto entry = std::make_unique<fb::SegmentT>();
    entry->hash_high = segment.hash.high;
    entry->hash_low = segment.hash.low;
    entry->offset = static_cast<std::uint64_t>(offset);
    entry->size = segment.bytes.size();
    program.segments.push_back(std::move(entry));
    offset = align_up(offset + static_cast<std::int64_t>(segment.bytes.size()), kSegmentAlignment);
  }
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  builder.Finish(fb::Program::Pack(builder, &program));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

// Header and metadata, padded so that segments start aligned; `segments_size` is what follows.
std::string pack_front(const std::string& metadata, std::int64_t segments_size) {
  FileHeader header;
  const ContentHash hash = hash_bytes(metadata.data(), metadata.size());
  header.metadata_offset = kSegmentAlignment;
  header.metadata_size = metadata.size();
  header.metadata_hash_high = hash.high;
  header.metadata_hash_low = hash.low;
  const auto front_size =
      align_up(kSegmentAlignment + static_cast<std::int64_t>(metadata.size()), kSegmentAlignment);
  header.file_size = static_cast<std::uint64_t>(front_size + segments_size);
  std::string front(static_cast<std::size_t>(front_size), '\0');
  std::memcpy(front.data(), &header, sizeof(header));
  std::memcpy(front.data() + header.metadata_offset, metadata.data(), metadata.size());
  return front;
}

std::int64_t padded_size(const Segment& segment) {
  return align_up(static_cast<std::int64_t>(segment.bytes.size()), kSegmentAlignment);
}

// Hands the pieces of the file of a verified image to `sink` in order.
template <typename Sink>
Status emit(const ProgramImage& image, Sink sink) {
  std::int64_t segments_size = 0;
  for (const Segment& segment : image.segments) segments_size += padded_size(segment);
  const std::string front = pack_front(pack_metadata(image), segments_size);
  TESSERA_TRY(sink(front.data(), front.size()));
  const std::string padding(kSegmentAlignment, '\0');
  for (const Segment& segment : image.segments) {
    TESSERA_TRY(sink(segment.bytes.data(), segment.bytes.size()));
    TESSERA_TRY(sink(padding.data(),
                     static_cast<std::size_t>(padded_size(segment)) - segment.bytes.size()));
  }
  return {};
}

}  // namespace

std::uint32_t SegmentPool::add(const Tensor& tensor) {
  TESSERA_CHECK(tensor.dtype() != DType::kString);
  const auto size_bytes = static_cast<std::size_t>(tensor.nbytes());
  const ContentHash hash = hash_bytes(tensor.data(), size_bytes);
  const auto [entry, is_new] =
      by_hash_.emplace(hash, static_cast<std::uint32_t>(image_.segments.size()));
  if (is_new) {
    auto owner = std::make_shared<Tensor>(tensor);
    image_.segments.push_back({hash, {static_cast<const std::byte*>(owner->data()), size_bytes}});
    image_.owners.push_back(std::move(owner));
  }
  return entry->second;
}

Result<std::string> serialize_program(const ProgramImage& image) {
  TESSERA_TRY(verify_program(image));
  std::string bytes;
  TESSERA_TRY(emit(image, [&](const void* data, std::size_t size) -> Status {
    bytes.append(static_cast<const char*>(data), size);
    return {};
  }));
  return bytes;
}

Status write_program(const ProgramImage& image, const std::filesystem::path& path) {
  TESSERA_TRY_IN(verify_program(image), path.string());
  TESSERA_ASSIGN(auto file, AtomicFile::create(path));
  TESSERA_TRY(
      emit(image, [&](const void* data, std::size_t size) { return file->write(data, size); }));
  return file->commit();
}

}  // namespace tessera::artefact
