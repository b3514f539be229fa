// The bytes of an input, taken apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "tests/support/paths.h"

namespace tearless::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The first byte, which chooses something; 0 where there is none.
inline uint8_t take_byte(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto first = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return first;
}

/// A new file: some file systems wait for the disk where an old one is cut to nothing and written again.
inline void write_new(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::remove(file);
  test::write_text(file, text);
}

/// Ends the process where a result is wrong, as a crash would.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

}  // namespace tearless::fuzz
