#include "engine/train/continued_file.h"

namespace tearless::engine {
namespace fs = std::filesystem;

bool begins_with(const fs::path& path, const FilePrefix& prefix) {
  if (!fs::exists(path)) return prefix.bytes == 0;
  const std::string bytes = read_file(path);
  if (bytes.size() < prefix.bytes) return false;
  return sha256(std::string_view(bytes).substr(0, prefix.bytes)) == prefix.sha256;
}

ContinuedFile::ContinuedFile(const fs::path& path, uint64_t keep_bytes) : file_(path, keep_bytes) {
  hash_.update(read_file(path));
}

void ContinuedFile::append(std::string_view bytes) {
  file_.append(bytes);
  hash_.update(bytes);
}

}  // namespace tearless::engine
