#pragma once

// Error handling inside the tree: macros over tessera/error.h. Bad input returns Result;
// TESSERA_CHECK is for bugs.

#include "tessera/error.h"

namespace tessera::detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace tessera::detail

// Aborts, with its location, when an invariant of ours does not hold. Never for bad input.
#define TESSERA_CHECK(condition)                                       \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::tessera::detail::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

#define TESSERA_CONCAT_INNER(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_INNER(a, b)

// Returns the error of a Status expression from the enclosing function, if it has one.
#define TESSERA_TRY(expression)                                           \
  do {                                                                    \
    if (auto tessera_status = (expression); !tessera_status) [[unlikely]] \
      return tl::unexpected(std::move(tessera_status).error());           \
  } while (false)

// As TESSERA_TRY, with one more place of context ("node 'conv1'").
#define TESSERA_TRY_IN(expression, place)                                                       \
  do {                                                                                          \
    if (auto tessera_status = (expression); !tessera_status) [[unlikely]]                       \
      return tl::unexpected(::tessera::in_context(std::move(tessera_status).error(), (place))); \
  } while (false)

#define TESSERA_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                                 \
  if (!result) [[unlikely]]                                   \
    return tl::unexpected(std::move(result).error());         \
  declaration = *std::move(result)

// `TESSERA_ASSIGN(auto x, f());` declares x from a Result, or returns its error.
#define TESSERA_ASSIGN(declaration, expression) \
  TESSERA_ASSIGN_INNER(TESSERA_CONCAT(tessera_result_, __LINE__), declaration, expression)
