#pragma once

// What a serialized model takes in memory once protobuf has parsed it, found without parsing it: an
// empty message of two bytes becomes an object of more than a hundred.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::importer {

inline constexpr int kMaxNesting = 100;  // messages inside of messages; protobuf's own default

struct ParseCost {
  std::uint64_t size_bytes = 0;     // of all objects, texts and lists; an upper estimate
  std::string_view largest;         // those that take most: "NodeProto messages", "texts"
  std::uint64_t largest_count = 0;  // how many of that kind there are
};

// Walks the wire format once, in time linear in `model`, with no memory of its own. Where the bytes
// are damaged the walk ends, as the parser will: the cost is that of what stands before.
ParseCost cost_of_parsing(std::span<const std::byte> model);

}  // namespace tessera::importer
