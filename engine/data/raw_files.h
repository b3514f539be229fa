// The raw files of a data set: whether they exist, their checksum, and their bytes. Used by every kind of data; knows
// nothing about what the files contain.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tearless::engine {

/// What a file should be, for the message about a folder or a pipe in its place.
inline constexpr std::string_view kTextFile = "a text file with one sentence a line";

/// A data file is missing, or is not the one that the run was planned with: the run can be trained once the file is
/// back (kExitData).
class DataError : public UserError {
 public:
  using UserError::UserError;
};

/// "SET lacks the file FILE: HOW_TO_GET" for the first of `files` that does not exist, "" if all exist. `set` is a noun
/// phrase, such as "the corpus toy".
std::string missing_file(const std::string& set, const std::string& how_to_get, std::span<const std::string> files);

/// Throws DataError with such a sentence unless it is "".
void require_data(const std::string& missing);

/// One checksum for `files`: the SHA-256 of a single file; of several the SHA-256 of their SHA-256s with a space
/// between two. Cached for the life of the process while a file's stamp (per_file.h) stays the same. Throws UserError
/// for a file that cannot be read or is not a regular one; `expected` says what to put there.
std::string files_sha256(std::span<const std::string> files, std::string_view expected = kTextFile);

/// Throws DataError if all files exist and files_sha256() is not `recorded`.
void verify_files(std::span<const std::string> files, const std::string& recorded,
                  std::string_view expected = kTextFile);

/// Throws UserError for the first bytes of a file that is compressed: by gzip, xz, zstd, bzip2 or zip.
void refuse_compressed(std::string_view bytes, const std::string& file);

/// The first bytes of a file, at most `bytes` of them, and its size. Cached as files_sha256() is. Throws UserError if
/// it cannot be read. REQUIRES: it is a regular file, as files_sha256() makes sure.
struct FileStart {
  std::string bytes;
  int64_t file_size = 0;
};
FileStart read_start(const std::string& file, int64_t bytes);

/// The bytes of each file. Throws UserError for a compressed file, and DataError if they do not match the checksum
/// `recorded`, unless that is "".
std::vector<std::string> read_files(std::span<const std::string> files, const std::string& recorded);

}  // namespace tearless::engine
