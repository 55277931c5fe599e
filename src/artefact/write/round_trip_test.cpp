// What is written is read back: every field of every table, and the same bytes again.

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "artefact/read/reader.h"
#include "artefact/write/rich_program_test.h"
#include "artefact/write/writer.h"
#include "testing/temp_dir.h"

namespace tessera::artefact {
namespace {

using testing::ProgramBuilder;
using testing::TempDir;

bool operator_equal(const TensorDecl& a, const TensorDecl& b) {
  return a.dtype == b.dtype && a.layout == b.layout && a.shape == b.shape;
}

void expect_equal(const std::vector<TensorDecl>& a, const std::vector<TensorDecl>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(operator_equal(a[i], b[i])) << i;
}

void expect_equal(const KernelSpec& a, const KernelSpec& b) {
  EXPECT_EQ(a.backend, b.backend);
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.kernel_version, b.kernel_version);
  expect_equal(a.inputs, b.inputs);
  expect_equal(a.constants, b.constants);
  EXPECT_EQ(a.constant_segments, b.constant_segments);
  expect_equal(a.outputs, b.outputs);
  EXPECT_EQ(a.output_operands, b.output_operands);
  EXPECT_EQ(a.options, b.options);
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].domain, b.steps[i].domain);
    EXPECT_EQ(a.steps[i].op_type, b.steps[i].op_type);
    EXPECT_EQ(a.steps[i].inputs, b.steps[i].inputs);
    EXPECT_EQ(a.steps[i].output_count, b.steps[i].output_count);
    EXPECT_TRUE(a.steps[i].attributes.equals(b.steps[i].attributes))
        << b.steps[i].attributes.to_string();
  }
}

void expect_equal(const BufferDecl& a, const BufferDecl& b) {
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.memory, b.memory);
  EXPECT_TRUE(operator_equal(a.tensor, b.tensor));
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.segment, b.segment);
  EXPECT_EQ(a.alias_of, b.alias_of);
  EXPECT_EQ(a.alias_offset_bytes, b.alias_offset_bytes);
  EXPECT_EQ(a.above, b.above);
  EXPECT_EQ(a.is_dynamic, b.is_dynamic);
}

void expect_equal(const std::vector<ScanAxis>& a, const std::vector<ScanAxis>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].axis, b[i].axis);
    EXPECT_EQ(a[i].reverse, b[i].reverse);
  }
}

void expect_equal(const ControlDecl& a, const ControlDecl& b) {
  EXPECT_EQ(a.is_scan, b.is_scan);
  EXPECT_EQ(a.has_trips, b.has_trips);
  EXPECT_EQ(a.has_condition, b.has_condition);
  EXPECT_EQ(a.carried, b.carried);
  expect_equal(a.scan_inputs, b.scan_inputs);
  expect_equal(a.scan_outputs, b.scan_outputs);
  EXPECT_EQ(a.kept, b.kept);
}

void expect_equal(const Instruction& a, const Instruction& b) {
  EXPECT_EQ(a.opcode, b.opcode);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.bodies, b.bodies);
  EXPECT_EQ(a.region, b.region);
  EXPECT_EQ(a.label, b.label);
  EXPECT_EQ(a.source_nodes, b.source_nodes);
  EXPECT_EQ(a.predicted_us, b.predicted_us);
  expect_equal(a.control, b.control);
}

void expect_equal(const std::vector<InterfaceDecl>& a, const std::vector<InterfaceDecl>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].buffer, b[i].buffer);
    EXPECT_EQ(a[i].type, b[i].type);
  }
}

void expect_equal(const MethodImage& a, const MethodImage& b) {
  EXPECT_EQ(a.name, b.name);
  expect_equal(a.inputs, b.inputs);
  expect_equal(a.outputs, b.outputs);
  ASSERT_EQ(a.states.size(), b.states.size());
  for (std::size_t i = 0; i < a.states.size(); ++i) {
    EXPECT_EQ(a.states[i].input, b.states[i].input);
    EXPECT_EQ(a.states[i].output, b.states[i].output);
    EXPECT_EQ(a.states[i].initial_segment, b.states[i].initial_segment);
  }
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (std::size_t i = 0; i < a.buffers.size(); ++i) expect_equal(a.buffers[i], b.buffers[i]);
  ASSERT_EQ(a.instructions.size(), b.instructions.size());
  for (std::size_t i = 0; i < a.instructions.size(); ++i)
    expect_equal(a.instructions[i], b.instructions[i]);
  EXPECT_EQ(a.symbols, b.symbols);
  EXPECT_EQ(a.priced_at, b.priced_at);
}

void expect_equal(const PlanImage& a, const PlanImage& b) {
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.memories.size(), b.memories.size());
  for (std::size_t i = 0; i < a.memories.size(); ++i)
    EXPECT_EQ(a.memories[i].name, b.memories[i].name);
  ASSERT_EQ(a.devices.size(), b.devices.size());
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    EXPECT_EQ(a.devices[i].name, b.devices[i].name);
    EXPECT_EQ(a.devices[i].backend, b.devices[i].backend);
    EXPECT_EQ(a.devices[i].memory, b.devices[i].memory);
    EXPECT_EQ(a.devices[i].profile, b.devices[i].profile);
    EXPECT_EQ(a.devices[i].launch_us, b.devices[i].launch_us);
    EXPECT_EQ(a.devices[i].sync_us, b.devices[i].sync_us);
  }
  ASSERT_EQ(a.methods.size(), b.methods.size());
  for (std::size_t i = 0; i < a.methods.size(); ++i) expect_equal(a.methods[i], b.methods[i]);
}

void expect_equal(const ProgramImage& a, const ProgramImage& b) {
  EXPECT_EQ(a.manifest, b.manifest);
  EXPECT_EQ(a.evidence, b.evidence);
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) expect_equal(a.kernels[i], b.kernels[i]);
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (std::size_t i = 0; i < a.plans.size(); ++i) expect_equal(a.plans[i], b.plans[i]);
  ASSERT_EQ(a.segments.size(), b.segments.size());
  for (std::size_t i = 0; i < a.segments.size(); ++i) {
    EXPECT_EQ(a.segments[i].hash, b.segments[i].hash);
    EXPECT_TRUE(std::ranges::equal(a.segments[i].bytes, b.segments[i].bytes)) << i;
  }
}

TEST(Artefact, ReadsWhatItWrote) {
  const TempDir folder;
  const ProgramImage image = rich_program().image;
  const auto status = write_program(image, folder / "m.tsr");
  ASSERT_TRUE(status) << status.error().to_string();
  const auto read = read_program(folder / "m.tsr", {.verify_segments = true});
  ASSERT_TRUE(read) << read.error().to_string();
  expect_equal(image, *read);
  EXPECT_EQ(*serialize_program(*read), *serialize_program(image));
}

TEST(Artefact, TheSameImageGivesTheSameBytes) {
  const TempDir folder;
  const auto bytes = serialize_program(rich_program().image);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, *serialize_program(rich_program().image));
  ASSERT_TRUE(write_program(rich_program().image, folder / "m.tsr"));
  EXPECT_EQ(testing::read_bytes(folder / "m.tsr"), *bytes);
}

TEST(Artefact, SegmentsStayAlignedInTheMappedFile) {
  const TempDir folder;
  const ProgramImage image = rich_program().image;
  ASSERT_TRUE(write_program(image, folder / "m.tsr"));
  const auto read = read_program(folder / "m.tsr");
  ASSERT_TRUE(read);
  ASSERT_GE(read->segments.size(), 3U);
  for (std::size_t i = 0; i < read->segments.size(); ++i) {
    const auto* data = read->segments[i].bytes.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
    if (i == 0) continue;
    const auto& before = read->segments[i - 1].bytes;
    EXPECT_EQ(data - before.data(), static_cast<std::ptrdiff_t>((before.size() + 63) / 64 * 64));
  }
}

TEST(SegmentPool, StoresEqualBytesOnce) {
  ProgramImage image;
  SegmentPool pool(image);
  const auto of = [](std::vector<float> values) {
    return Tensor::of<float>(DType::kFp32, {static_cast<std::int64_t>(values.size())}, values);
  };
  EXPECT_EQ(pool.add(of({1, 2})), 0U);
  EXPECT_EQ(pool.add(of({1, 3})), 1U);
  EXPECT_EQ(pool.add(of({1, 2}).reshaped({2, 1})), 0U);
  ASSERT_EQ(image.segments.size(), 2U);
  EXPECT_EQ(reinterpret_cast<const float*>(image.segments[1].bytes.data())[1], 3);
}

TEST(WriteProgram, RefusesAnUnsoundImageBeforeItWrites) {
  const TempDir folder;
  const auto path = folder / "m.tsr";
  const auto status = write_program({}, path);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().to_string(), path.string() + ": damaged artefact: no plan");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(serialize_program({}).error().to_string(), "damaged artefact: no plan");
}

TEST(WriteProgram, NamesAFolderThatIsNotThere) {
  const TempDir folder;
  const auto path = folder / "no" / "m.tsr";
  EXPECT_EQ(write_program(rich_program().image, path).error().to_string(),
            "cannot write '" + path.string() + "': No such file or directory");
}

// Files of this process may not grow past `size_bytes` while this lives: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t size_bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{size_bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(WriteProgram, AFullDiskLeavesWhatWasThere) {
  const TempDir folder;
  const auto path = folder.write("m.tsr", "old");
  const ProgramImage image = rich_program().image;
  const std::size_t size_bytes = serialize_program(image)->size();
  for (const std::size_t room : {std::size_t{0}, std::size_t{100}, size_bytes - 1}) {
    Status status;
    {
      const FullDisk full(room);
      status = write_program(image, path);
    }
    ASSERT_FALSE(status) << room;
    EXPECT_EQ(status.error().to_string(), "cannot write '" + path.string() + "': File too large");
    EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(testing::read_bytes(path), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  }
  ASSERT_TRUE(write_program(image, path));
  EXPECT_EQ(testing::read_bytes(path).size(), size_bytes);
}

}  // namespace
}  // namespace tessera::artefact
