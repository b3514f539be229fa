// Sizes of memory in messages and on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tearless {

/// "7.8 GiB"; below 1 GiB "512 MiB". Rounded to the nearest.
std::string memory_text(int64_t bytes);

/// As memory_text(), rounded up and down. Of a need that exceeds what is free, the printed numbers then differ too.
std::string memory_text_up(int64_t bytes);
std::string memory_text_down(int64_t bytes);

/// So many times as much, rounded up.
int64_t scaled(int64_t bytes, double factor);

/// Reads "24GiB", "1.5 GiB" or "512 MiB", greater than 0; nullopt for anything else.
std::optional<int64_t> parse_memory(std::string_view text);

}  // namespace tearless
