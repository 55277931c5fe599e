#pragma once

// Errors of the public interface. Bad input returns `Result`; a bug aborts through TESSERA_CHECK.

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace tessera {

// The canonical set of error codes.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,     // the input or an option is wrong, whatever the state of the system
  kNotFound,            // a named thing (file, input, node, device) does not exist
  kAlreadyExists,       // a name is used twice
  kFailedPrecondition,  // the system is not in the state that the call needs
  kOutOfRange,          // a number lies outside of what is allowed
  kUnimplemented,       // valid, but not supported (operator, type, instruction)
  kResourceExhausted,   // memory, disk or a stated limit is used up
  kUnavailable,         // a device or library is not here
  kDataLoss,            // bytes are truncated or damaged
  kCancelled,           // the user stopped the work
  kInternal,            // an invariant of ours does not hold
};

std::string_view to_string(ErrorCode code);

// One failure: what went wrong, and where, from the innermost place outwards.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // "expected 4 bytes, found 3"
  std::vector<std::string>
      context;  // innermost first: "attribute 'pads'", "node 'conv1'", "m.onnx"

  // "m.onnx: node 'conv1': attribute 'pads': expected 4 values, found 3".
  [[nodiscard]] std::string to_string() const;
};

// A value or an Error (the interface of C++23's std::expected).
template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// A failed Result of any type.
tl::unexpected<Error> fail(ErrorCode code, std::string message);

// `error` with one more place around it; for `return tl::unexpected(in_context(...))`.
Error in_context(Error error, std::string place);

}  // namespace tessera
