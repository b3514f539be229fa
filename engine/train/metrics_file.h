// metrics.jsonl as an attempt continues it. A checkpoint records how the file began when it was written, so that it is
// taken up again only where the file still begins like that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/hash.h"

namespace tearless::engine {

/// The first bytes of a file.
struct FilePrefix {
  uint64_t bytes = 0;
  std::string sha256;  // "": not known; checkpoints of format 2 did not record it
};

/// Whether the file at `path` begins like that. One that is missing is empty.
bool begins_with(const std::filesystem::path& path, const FilePrefix& prefix);

class MetricsFile {
 public:
  /// Opens or makes `path`, cut back to its first `keep_bytes` bytes (it must have at least that many).
  MetricsFile(const std::filesystem::path& path, uint64_t keep_bytes);

  void append(std::string_view lines);
  void sync() { file_.sync(); }
  /// All that was kept and appended, as it was meant: not read back.
  FilePrefix written() const { return {file_.size(), hash_.hex()}; }

 private:
  AppendFile file_;
  Sha256 hash_;
};

}  // namespace tearless::engine
