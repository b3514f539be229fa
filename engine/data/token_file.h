// The file of a prepared corpus: one line of JSON (format, vocabulary size, SHA-256 of the rest), then the
// rest, little-endian. Not for exchange: another format number makes another cache key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/data/prepared.h"

namespace tearless::engine {

/// To be raised whenever the file, or what text becomes in it, changes: older entries are then left alone.
inline constexpr int kTokenFileFormat = 2;

std::string token_file_bytes(const Prepared& prepared);

/// Throws std::runtime_error, saying what is wrong, for a file that is damaged; UserError for one that cannot be read.
/// A checksum only says that the bytes are those that were written, by whom it does not: sizes, offsets and token
/// numbers are checked as well.
Prepared read_token_file(const std::filesystem::path& file, TextKind kind);
Prepared parse_token_file(std::string_view bytes, TextKind kind);

/// From the first line alone; nothing where there is no such file or its first line makes no sense.
std::optional<int64_t> token_file_vocabulary_size(const std::filesystem::path& file);

}  // namespace tearless::engine
