#include "solve/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "solve/memory_validate.h"

namespace tessera::solve {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kFixed, kOffset, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"id",        "lower", "upper", "size",
                                                           "alignment", "fixed", "offset"};

tl::unexpected<Error> invalid(std::size_t line, std::string message) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}", line, message));
}

struct Record {
  std::size_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// Splits CSV (RFC 4180) into records; blank lines are left out.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  Result<std::vector<Record>> run() {
    while (at_ < text_.size()) {
      Record record{line_, {}};
      TESSERA_TRY(read_record(record));
      if (record.fields.size() > 1 || !record.fields[0].empty()) {
        records_.push_back(std::move(record));
      }
    }
    return std::move(records_);
  }

 private:
  Status read_record(Record& record) {
    for (;;) {
      TESSERA_TRY(read_field(record));
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < text_.size() && text_[at_] == '\r') ++at_;
      if (at_ < text_.size() && text_[at_] != '\n') {
        return invalid(line_, "expected a comma after a quoted field");
      }
      ++at_;
      ++line_;
      return {};
    }
  }

  Status read_field(Record& record) {
    std::string field;
    if (at_ < text_.size() && text_[at_] == '"') {
      TESSERA_TRY(read_quoted(field));
    } else {
      const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      field = text_.substr(at_, end - at_);
      at_ = end;
    }
    record.fields.push_back(std::move(field));
    return {};
  }

  Status read_quoted(std::string& field) {
    const std::size_t begin = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          return {};
        }
        ++at_;
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    return invalid(begin, "a quoted field does not end");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<Record> records_;
};

// Where each column stands, by the header.
using Positions = std::array<std::optional<std::size_t>, kColumns>;

Result<Positions> read_header(const Record& header) {
  Positions positions;
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    const auto found = std::find(kNames.begin(), kNames.end(), header.fields[i]);
    if (found == kNames.end()) {
      return invalid(header.line,
                     fmt::format("unknown column '{}' (expected id, lower, upper, size, and "
                                 "optionally alignment, fixed, offset)",
                                 header.fields[i]));
    }
    auto& position = positions[static_cast<std::size_t>(found - kNames.begin())];
    if (position) return invalid(header.line, fmt::format("column '{}' stands twice", *found));
    position = i;
  }
  for (const Column column : {kId, kLower, kUpper, kSize}) {
    if (!positions[column]) {
      return invalid(header.line, fmt::format("column '{}' is missing", kNames[column]));
    }
  }
  return positions;
}

class RowReader {
 public:
  RowReader(const Record& record, const Positions& positions)
      : record_(record), positions_(positions) {}

  [[nodiscard]] bool has(Column column) const {
    return positions_[column] && !record_.fields[*positions_[column]].empty();
  }
  [[nodiscard]] Result<std::int64_t> number(Column column) const {
    const std::string& text = record_.fields[*positions_[column]];
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::result_out_of_range) {
      return invalid(record_.line,
                     fmt::format("{}: '{}' does not fit 64 bits", kNames[column], text));
    }
    if (error != std::errc{} || stop != end) {
      return invalid(record_.line,
                     fmt::format("{}: expected a whole number, found '{}'", kNames[column], text));
    }
    return value;
  }

  [[nodiscard]] Result<Buffer> buffer() const {
    Buffer buffer;
    buffer.id = record_.fields[*positions_[kId]];
    TESSERA_ASSIGN(buffer.lower, number(kLower));
    TESSERA_ASSIGN(buffer.upper, number(kUpper));
    TESSERA_ASSIGN(buffer.size_bytes, number(kSize));
    if (has(kAlignment)) {
      TESSERA_ASSIGN(buffer.alignment, number(kAlignment));
    }
    if (has(kFixed)) {
      TESSERA_ASSIGN(buffer.fixed_offset, number(kFixed));
    }
    return buffer;
  }

 private:
  const Record& record_;
  const Positions& positions_;
};

MemorySolution solution_of(const MemoryProblem& problem, std::vector<std::int64_t> offsets) {
  MemorySolution solution;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size_bytes == 0 || buffer.lower == buffer.upper) continue;
    std::int64_t end = 0;
    if (__builtin_add_overflow(offsets[i], buffer.size_bytes, &end))
      continue;  // validate() refuses
    solution.arena_bytes = std::max(solution.arena_bytes, end);
  }
  solution.offsets = std::move(offsets);
  solution.peak_live_bytes = peak_live_bytes(problem);
  return solution;
}

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

Result<MemoryTable> parse_memory(std::string_view csv) {
  TESSERA_ASSIGN(const std::vector<Record> records, CsvReader(csv).run());
  if (records.empty()) {
    return fail(ErrorCode::kInvalidArgument, "expected a header line, found an empty file");
  }
  TESSERA_ASSIGN(const Positions positions, read_header(records[0]));
  MemoryTable table;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.fields.size() != records[0].fields.size()) {
      return invalid(record.line, fmt::format("expected {} fields, found {}",
                                              records[0].fields.size(), record.fields.size()));
    }
    const RowReader row(record, positions);
    TESSERA_ASSIGN(Buffer buffer, row.buffer());
    table.problem.buffers.push_back(std::move(buffer));
    if (positions[kOffset]) {
      TESSERA_ASSIGN(const std::int64_t offset, row.number(kOffset));
      offsets.push_back(offset);
    }
  }
  TESSERA_TRY(check_memory_problem(table.problem));
  if (positions[kOffset]) table.solution = solution_of(table.problem, std::move(offsets));
  return table;
}

std::string print_memory(const MemoryProblem& problem, const MemorySolution* solution) {
  const bool aligned = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                   [](const Buffer& buffer) { return buffer.alignment != 1; });
  const bool fixed = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                 [](const Buffer& b) { return b.fixed_offset.has_value(); });
  std::string out = "id,lower,upper,size";
  if (aligned) out += ",alignment";
  if (fixed) out += ",fixed";
  if (solution != nullptr) out += ",offset";
  out += '\n';
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    out += fmt::format("{},{},{},{}", quoted(buffer.id), buffer.lower, buffer.upper,
                       buffer.size_bytes);
    if (aligned) out += fmt::format(",{}", buffer.alignment);
    if (fixed) out += buffer.fixed_offset ? fmt::format(",{}", *buffer.fixed_offset) : ",";
    if (solution != nullptr) out += fmt::format(",{}", solution->offsets[i]);
    out += '\n';
  }
  return out;
}

}  // namespace tessera::solve
