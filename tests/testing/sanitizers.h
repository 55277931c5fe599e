#pragma once

namespace tessera::testing {

// Whether the tree is built with the thread sanitizer. It makes loops on one thread some twenty
// times slower and has nothing to find in them, so a test that takes most of its suite's time for
// its size alone is smaller there.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// Whether it is built with the address sanitizer, which takes memory of its own.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace tessera::testing
