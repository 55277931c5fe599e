#pragma once

// Numbers of the zip format (PKWARE APPNOTE 6.3.x), shared by reader and writer.

#include <cstdint>

namespace tessera::io::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034B50;
inline constexpr std::uint32_t kEntrySignature = 0x02014B50;
inline constexpr std::uint32_t kEndSignature = 0x06054B50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064B50;
inline constexpr std::uint32_t kEnd64LocatorSignature = 0x07064B50;

inline constexpr std::size_t kLocalBytes = 30;
inline constexpr std::size_t kEntryBytes = 46;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kEnd64LocatorBytes = 20;

inline constexpr std::uint16_t kMethodStored = 0;
inline constexpr std::uint16_t kMethodDeflated = 8;
inline constexpr std::uint16_t kFlagEncrypted = 1U << 0U;
inline constexpr std::uint16_t kFlagUtf8 = 1U << 11U;
inline constexpr std::uint16_t kZip64Field = 1;     // the extra field with 64-bit sizes
inline constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // a 32-bit size that stands in the zip64 field
inline constexpr std::uint16_t kIn64Count = 0xFFFF;
inline constexpr std::uint16_t kDate1980 = (1U << 5U) | 1U;  // January the 1st

}  // namespace tessera::io::zip
