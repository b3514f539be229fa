// The cache file of a prepared corpus: one line of JSON (format number, vocabulary sizes, SHA-256 of the rest), then
// binary data, little-endian. The format is private: the format number is part of the cache key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/data/prepared.h"

namespace tearless::engine {

/// Increase it whenever the file format, or the way text becomes tokens, changes. Entries of older formats are ignored.
inline constexpr int kTokenFileFormat = 3;

/// The bytes of the file.
std::string token_file_bytes(const Prepared& prepared);

/// Reads and verifies a token file. Throws std::runtime_error, saying what is wrong, for a damaged file; UserError for
/// one that cannot be read. Sizes, offsets and token numbers are verified besides the checksum, because a checksum does
/// not tell who wrote the bytes.
Prepared read_token_file(const std::filesystem::path& file, TextKind kind);
Prepared parse_token_file(std::string_view bytes, TextKind kind);

/// The vocabularies' sizes in the first line; nothing if the file is missing or its first line is damaged.
std::optional<VocabularySizes> token_file_vocabulary_sizes(const std::filesystem::path& file);

}  // namespace tearless::engine
