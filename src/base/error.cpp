#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/shown_text.h"

namespace tessera {
namespace {

constexpr std::string_view kEntry = "\n  ";

}  // namespace

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kAlreadyExists: return "already exists";
    case ErrorCode::kFailedPrecondition: return "failed precondition";
    case ErrorCode::kOutOfRange: return "out of range";
    case ErrorCode::kUnimplemented: return "unimplemented";
    case ErrorCode::kResourceExhausted: return "resource exhausted";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kDataLoss: return "data loss";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string text;
  for (auto place = context.rbegin(); place != context.rend(); ++place)
    text += shown(*place) + ": ";
  // Lists have an indented line for each entry.
  std::string_view rest = message;
  for (auto end = rest.find(kEntry); end != std::string_view::npos; end = rest.find(kEntry)) {
    text += shown(rest.substr(0, end)) + std::string(kEntry);
    rest.remove_prefix(end + kEntry.size());
  }
  return text + shown(rest);
}

tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected(Error{code, std::move(message), {}});
}

Error in_context(Error error, std::string place) {
  error.context.push_back(std::move(place));
  return error;
}

namespace detail {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "tessera: internal error: '%s' does not hold at %s:%d\n", condition, file,
               line);
  std::abort();
}

}  // namespace detail
}  // namespace tessera
