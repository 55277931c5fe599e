#include "artefact/read/reader.h"

#include <fmt/format.h>

#include <cstring>

#include "artefact/read/file_format.h"
#include "base/checked.h"
#include "base/file.h"
#include "program_generated.h"

namespace tessera::artefact {
namespace {

template <typename... Args>
tl::unexpected<Error> damaged(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kDataLoss,
              "damaged artefact: " + fmt::format(format, std::forward<Args>(args)...));
}

// Turns the generated structures into ours. Strings and shapes are parsed here, once; a wrong one
// is a damaged artefact.
class Unpacker {
 public:
  Result<ProgramImage> unpack(fb::ProgramT& program);

 private:
  Result<Dim> dim(std::uint32_t number) const {
    if (number >= dims_.size()) return damaged("dim {} of {}", number, dims_.size());
    return dims_[number];
  }

  static Result<DType> dtype(std::uint8_t number) {
    if (number >= kDTypeCount) return damaged("dtype {}: expected below {}", number, kDTypeCount);
    return static_cast<DType>(number);
  }

  Result<TensorDecl> decl(const std::unique_ptr<fb::TensorDeclT>& packed) const;
  Result<std::vector<TensorDecl>> decls(
      const std::vector<std::unique_ptr<fb::TensorDeclT>>& packed) const;
  static Result<Tensor> tensor(const fb::TensorValueT& packed);
  static Result<ops::AttributeValue> attribute(fb::AttributeT& packed);
  static Result<KernelStep> step(fb::StepT& packed);
  Result<KernelSpec> kernel(fb::KernelT& packed) const;
  Result<BufferDecl> buffer(fb::BufferT& packed) const;
  static Result<Instruction> instruction(fb::InstructionT& packed);
  static Result<std::vector<InterfaceDecl>> interfaces(
      const std::vector<std::unique_ptr<fb::InterfaceT>>& packed);
  Result<MethodImage> method(fb::MethodT& packed) const;
  Result<PlanImage> plan(fb::PlanT& packed) const;

  std::vector<Dim> dims_;
};

Result<TensorDecl> Unpacker::decl(const std::unique_ptr<fb::TensorDeclT>& packed) const {
  if (packed == nullptr) return damaged("a tensor declaration is missing");
  TensorDecl result;
  TESSERA_ASSIGN(result.dtype, dtype(packed->dtype));
  TESSERA_ASSIGN(result.layout, parse_layout(packed->layout));
  for (const std::uint32_t number : packed->shape) {
    TESSERA_ASSIGN(Dim size, dim(number));
    result.shape.push_back(std::move(size));
  }
  return result;
}

Result<std::vector<TensorDecl>> Unpacker::decls(
    const std::vector<std::unique_ptr<fb::TensorDeclT>>& packed) const {
  std::vector<TensorDecl> result;
  for (const auto& entry : packed) {
    TESSERA_ASSIGN(TensorDecl tensor_decl, decl(entry));
    result.push_back(std::move(tensor_decl));
  }
  return result;
}

Result<Tensor> Unpacker::tensor(const fb::TensorValueT& packed) {
  TESSERA_ASSIGN(const DType type, dtype(packed.dtype));
  TESSERA_ASSIGN(const std::int64_t expected, checked_nbytes(type, packed.dims));
  if (type == DType::kString) {
    if (checked_numel(packed.dims) != static_cast<std::int64_t>(packed.strings.size()))
      return damaged("a string tensor {} holds {} strings", to_string(packed.dims),
                     packed.strings.size());
    return Tensor::copy_of({type, packed.dims, packed.strings.data()});
  }
  if (expected != static_cast<std::int64_t>(packed.bytes.size()))
    return damaged("a tensor {}: expected {} bytes, found {}", to_string(packed.dims), expected,
                   packed.bytes.size());
  return Tensor::copy_of({type, packed.dims, packed.bytes.data()});
}

Result<ops::AttributeValue> Unpacker::attribute(fb::AttributeT& packed) {
  std::vector<Tensor> tensors;
  for (const auto& entry : packed.tensors) {
    TESSERA_ASSIGN(Tensor value, tensor(*entry));
    tensors.push_back(std::move(value));
  }
  switch (packed.kind) {
    case 0: return ops::AttributeValue(packed.i);
    case 1: return ops::AttributeValue(packed.f);
    case 2: return ops::AttributeValue(std::move(packed.s));
    case 3:
      if (tensors.size() != 1)
        return damaged("attribute '{}': expected one tensor, found {}", packed.name,
                       tensors.size());
      return ops::AttributeValue(std::move(tensors.front()));
    case 4: {
      TESSERA_ASSIGN(ValueType type, parse_value_type(packed.s));
      return ops::AttributeValue(std::move(type));
    }
    case 5: return ops::AttributeValue(std::move(packed.ints));
    case 6: return ops::AttributeValue(std::move(packed.floats));
    case 7: return ops::AttributeValue(std::move(packed.strings));
    case 8: return ops::AttributeValue(std::move(tensors));
    default: return damaged("attribute '{}': kind {}: expected below 9", packed.name, packed.kind);
  }
}

Result<KernelStep> Unpacker::step(fb::StepT& packed) {
  KernelStep result;
  result.domain = std::move(packed.domain);
  result.op_type = std::move(packed.op_type);
  for (const auto& entry : packed.attributes) {
    TESSERA_ASSIGN(ops::AttributeValue value, attribute(*entry));
    result.attributes.set(entry->name, std::move(value));
  }
  result.inputs = std::move(packed.inputs);
  result.output_count = packed.output_count;
  return result;
}

Result<KernelSpec> Unpacker::kernel(fb::KernelT& packed) const {
  KernelSpec spec;
  spec.backend = std::move(packed.backend);
  spec.kernel = std::move(packed.kernel);
  spec.kernel_version = packed.kernel_version;
  TESSERA_ASSIGN(spec.inputs, decls(packed.inputs));
  TESSERA_ASSIGN(spec.constants, decls(packed.constants));
  spec.constant_segments = std::move(packed.constant_segments);
  TESSERA_ASSIGN(spec.outputs, decls(packed.outputs));
  for (const auto& entry : packed.steps) {
    TESSERA_ASSIGN(KernelStep kernel_step, step(*entry));
    spec.steps.push_back(std::move(kernel_step));
  }
  spec.output_operands = std::move(packed.output_operands);
  for (const auto& entry : packed.options) spec.options[entry->key] = entry->value;
  return spec;
}

Result<BufferDecl> Unpacker::buffer(fb::BufferT& packed) const {
  BufferDecl result;
  result.value = std::move(packed.value);
  result.memory = packed.memory;
  TESSERA_ASSIGN(result.tensor, decl(packed.tensor));
  if (packed.kind > static_cast<std::uint8_t>(BufferKind::kState))
    return damaged("buffer kind {}", packed.kind);
  result.kind = static_cast<BufferKind>(packed.kind);
  result.segment = packed.segment;
  result.alias_of = packed.alias_of;
  TESSERA_ASSIGN(result.alias_offset_bytes, dim(packed.alias_offset));
  result.above = std::move(packed.above);
  result.is_dynamic = packed.is_dynamic;
  return result;
}

std::vector<ScanAxis> unpack_axes(const std::vector<std::unique_ptr<fb::ScanAxisT>>& packed) {
  std::vector<ScanAxis> axes;
  for (const auto& axis : packed) axes.push_back({axis->axis, axis->reverse});
  return axes;
}

ControlDecl unpack_control(const fb::ControlT& packed) {
  ControlDecl control;
  control.is_scan = packed.is_scan;
  control.has_trips = packed.has_trips;
  control.has_condition = packed.has_condition;
  control.carried = packed.carried;
  control.scan_inputs = unpack_axes(packed.scan_inputs);
  control.scan_outputs = unpack_axes(packed.scan_outputs);
  control.kept = packed.kept;
  return control;
}

Result<Instruction> Unpacker::instruction(fb::InstructionT& packed) {
  Instruction result;
  if (packed.opcode > static_cast<std::uint8_t>(Opcode::kWriteBack))
    return damaged("opcode {}", packed.opcode);
  result.opcode = static_cast<Opcode>(packed.opcode);
  result.device = packed.device;
  result.kernel = packed.kernel;
  result.inputs = std::move(packed.inputs);
  result.outputs = std::move(packed.outputs);
  result.bodies = std::move(packed.bodies);
  result.region = packed.region;
  result.label = std::move(packed.label);
  result.source_nodes = std::move(packed.source_nodes);
  result.predicted_us = packed.predicted_us;
  if (packed.control != nullptr) result.control = unpack_control(*packed.control);
  return result;
}

Result<std::vector<InterfaceDecl>> Unpacker::interfaces(
    const std::vector<std::unique_ptr<fb::InterfaceT>>& packed) {
  std::vector<InterfaceDecl> result;
  for (const auto& entry : packed) {
    TESSERA_ASSIGN(ValueType type, parse_value_type(entry->type));
    result.push_back({entry->name, entry->buffer, std::move(type)});
  }
  return result;
}

Result<MethodImage> Unpacker::method(fb::MethodT& packed) const {
  MethodImage result;
  result.name = std::move(packed.name);
  TESSERA_ASSIGN(result.inputs, interfaces(packed.inputs));
  TESSERA_ASSIGN(result.outputs, interfaces(packed.outputs));
  for (const auto& entry : packed.states)
    result.states.push_back({entry->input, entry->output, entry->initial_segment});
  for (const auto& entry : packed.buffers) {
    TESSERA_ASSIGN(BufferDecl decl, buffer(*entry));
    result.buffers.push_back(std::move(decl));
  }
  for (const auto& entry : packed.instructions) {
    TESSERA_ASSIGN(Instruction decoded, instruction(*entry));
    result.instructions.push_back(std::move(decoded));
  }
  for (const auto& entry : packed.symbols) result.symbols[entry->name] = {entry->min, entry->max};
  for (const auto& entry : packed.priced_at) result.priced_at[entry->key] = entry->value;
  return result;
}

Result<PlanImage> Unpacker::plan(fb::PlanT& packed) const {
  PlanImage result;
  result.name = std::move(packed.name);
  for (auto& memory : packed.memories) result.memories.push_back({std::move(memory)});
  for (const auto& entry : packed.devices) {
    result.devices.push_back({entry->name, entry->backend, entry->memory, entry->profile,
                              entry->launch_us, entry->sync_us});
  }
  for (const auto& entry : packed.methods) {
    TESSERA_ASSIGN(MethodImage decoded, method(*entry));
    result.methods.push_back(std::move(decoded));
  }
  return result;
}

Result<ProgramImage> Unpacker::unpack(fb::ProgramT& program) {
  ProgramImage image;
  for (const std::string& text : program.dims) {
    TESSERA_ASSIGN(Dim parsed, parse_dim(text));
    dims_.push_back(std::move(parsed));
  }
  for (const auto& entry : program.manifest) image.manifest[entry->key] = entry->value;
  for (const auto& entry : program.kernels) {
    TESSERA_ASSIGN(KernelSpec spec, kernel(*entry));
    image.kernels.push_back(std::move(spec));
  }
  for (const auto& entry : program.plans) {
    TESSERA_ASSIGN(PlanImage decoded, plan(*entry));
    image.plans.push_back(std::move(decoded));
  }
  image.evidence = std::move(program.evidence);
  return image;
}

Result<FileHeader> read_header(std::span<const std::byte> bytes) {
  FileHeader header;
  if (bytes.size() < sizeof(header) || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return fail(ErrorCode::kDataLoss,
                "not a tessera artefact: expected a file that starts with 'TESSERA'");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.format_version != kFormatVersion)
    return fail(
        ErrorCode::kFailedPrecondition,
        fmt::format(
            "artefact format version {}; this build reads version {}: compile the model again",
            header.format_version, kFormatVersion));
  if (header.file_size != bytes.size())
    return damaged("expected {} bytes, found {}", header.file_size, bytes.size());
  if (header.metadata_offset > bytes.size() ||
      header.metadata_size > bytes.size() - header.metadata_offset)
    return damaged("the metadata lies outside of the file");
  return header;
}

Status place_segments(const fb::ProgramT& program, std::span<const std::byte> area, bool verify,
                      ProgramImage& image) {
  for (std::size_t i = 0; i < program.segments.size(); ++i) {
    const auto& entry = *program.segments[i];
    if (entry.offset > area.size() || entry.size > area.size() - entry.offset ||
        entry.offset % kSegmentAlignment != 0)
      return damaged("segment {} lies outside of the file", i);
    const Segment segment{{entry.hash_high, entry.hash_low},
                          area.subspan(entry.offset, entry.size)};
    if (verify && hash_bytes(segment.bytes.data(), segment.bytes.size()) != segment.hash)
      return damaged("segment {}: its bytes do not match their hash {}", i,
                     segment.hash.to_string());
    image.segments.push_back(segment);
  }
  return {};
}

Result<ProgramImage> read_mapped(const std::shared_ptr<const MappedFile>& file,
                                 const ReadOptions& options) {
  const auto bytes = file->bytes();
  TESSERA_ASSIGN(const FileHeader header, read_header(bytes));
  const auto metadata = bytes.subspan(header.metadata_offset, header.metadata_size);
  if (hash_bytes(metadata.data(), metadata.size()) !=
      ContentHash{header.metadata_hash_high, header.metadata_hash_low})
    return damaged("the metadata does not match its hash");
  const auto* data = reinterpret_cast<const std::uint8_t*>(metadata.data());
  flatbuffers::Verifier verifier(data, metadata.size(), 128, 100'000'000);
  if (!fb::VerifyProgramBuffer(verifier)) return damaged("the metadata is not a program");
  fb::ProgramT program;
  fb::GetProgram(data)->UnPackTo(&program);
  TESSERA_ASSIGN(ProgramImage image, Unpacker().unpack(program));
  const auto front = static_cast<std::size_t>(align_up(
      static_cast<std::int64_t>(header.metadata_offset + header.metadata_size), kSegmentAlignment));
  if (front > bytes.size()) return damaged("the segments lie outside of the file");
  TESSERA_TRY(place_segments(program, bytes.subspan(front), options.verify_segments, image));
  image.owners.push_back(file);
  TESSERA_TRY(verify_program(image));
  return image;
}

}  // namespace

Result<ProgramImage> read_program(const std::filesystem::path& path, const ReadOptions& options) {
  TESSERA_ASSIGN(const auto file, MappedFile::open(path));
  auto image = read_mapped(file, options);
  if (!image) return tl::unexpected(in_context(std::move(image).error(), path.string()));
  return image;
}

}  // namespace tessera::artefact
