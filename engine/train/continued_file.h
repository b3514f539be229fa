// metrics.jsonl and gradient_norms.f32, continued from attempt to attempt. A checkpoint stores the length and checksum
// of each file at its time; the run resumes from that checkpoint only if the files still begin so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/hash.h"

namespace tearless::engine {

/// The beginning of a file.
struct FilePrefix {
  uint64_t bytes = 0;  // its length
  std::string sha256;  // of these bytes
};

/// Whether the file at `path` begins like that. A missing file counts as empty.
bool begins_with(const std::filesystem::path& path, const FilePrefix& prefix);

class ContinuedFile {
 public:
  /// Opens or creates `path` and truncates it to `keep_bytes` bytes, which it must have.
  ContinuedFile(const std::filesystem::path& path, uint64_t keep_bytes);

  void append(std::string_view bytes);
  void sync() { file_.sync(); }
  /// The length and checksum of everything retained and appended, as written, not read back.
  FilePrefix written() const { return {file_.size(), hash_.hex()}; }

 private:
  AppendFile file_;
  Sha256 hash_;
};

}  // namespace tearless::engine
