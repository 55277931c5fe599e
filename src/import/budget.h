#pragma once

// How much memory the import of a model may take: so many times the size of its file, and a little
// more. What would take more ends in an error before the memory is asked for, so that no small file
// fills a machine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace tessera::importer {

// Upper estimates of what the parts of a model take beside their messages, with the names that
// stand for them in the builder's tables while it works.
inline constexpr std::uint64_t kValueBytes = 450;
inline constexpr std::uint64_t kConstantBytes = kValueBytes + 250;
inline constexpr std::uint64_t kNameCopies = 4;  // of the name of a node or value

class ImportBudget {
 public:
  static constexpr std::uint64_t kTimesFile = 20;
  static constexpr std::uint64_t kBaseBytes = std::uint64_t{64} << 20;
  // Of the base, what the process takes before it has read anything: code, libraries, the op table.
  static constexpr std::uint64_t kProcessBytes = std::uint64_t{24} << 20;

  // What memory is taken for, for the error.
  enum class Use : std::uint8_t {
    kMessages,
    kNodes,
    kElements,
    kConstants,
    kValues,
    kSizes,
    kFunctions,
    kOperators,
    kOpsets,
    kMetadata,
    kCount
  };

  // `model_bytes` is the size of the serialized model, without external data.
  explicit ImportBudget(std::uint64_t model_bytes);

  // Takes `size_bytes` for `count` pieces. Error: "importing takes more than 67,108,884 bytes of
  // memory, the limit for a model of 1 byte (20 times its size and 64 MiB): 81,000 nodes take most
  // of it".
  Status take(Use use, std::uint64_t size_bytes, std::uint64_t count = 1);
  // The same error where `size_bytes` more, which are given back soon, are not there.
  [[nodiscard]] Status require(Use use, std::uint64_t size_bytes) const;
  // The name of what the messages are, where most of them are of one kind.
  void name_messages(std::string_view name) { messages_ = name; }

 private:
  struct Taken {
    std::uint64_t size_bytes = 0;
    std::uint64_t count = 0;
  };

  [[nodiscard]] Error exhausted() const;

  std::uint64_t model_bytes_;
  std::uint64_t left_bytes_;
  std::string_view messages_ = "messages";
  std::array<Taken, static_cast<std::size_t>(Use::kCount)> taken_{};
};

}  // namespace tessera::importer
