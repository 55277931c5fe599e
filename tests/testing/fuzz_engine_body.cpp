// A body for the test of the fuzz engine: fails on inputs that hold three given bytes, where
// TESSERA_FUZZ_TRAP asks for that.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (std::getenv("TESSERA_FUZZ_TRAP") != nullptr &&
      input.find("\xff\xff\xff") != std::string_view::npos)
    std::abort();
  return 0;
}
