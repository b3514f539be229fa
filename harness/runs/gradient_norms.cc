#include "harness/runs/gradient_norms.h"

#include <bit>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace tearless::harness {
namespace fs = std::filesystem;

void read_gradient_norms(const RunDirectory& run, const std::function<void(int64_t update, double norm)>& read) {
  static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);
  const fs::path path = run.gradient_norms();
  if (!fs::exists(path)) return;
  if (!fs::is_regular_file(path)) fail("{}: not a file", path.string());
  const uintmax_t bytes = fs::file_size(path);
  const bool is_whole = bytes % sizeof(float) == 0 || !fs::exists(run.done());  // an attempt may be writing
  if (!is_whole) {
    fail("{}: its {} bytes are no whole number of updates of {} bytes; to see what else is changed: tearless verify",
         path.string(), bytes, sizeof(float));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_errno("read", path);
  std::vector<float> norms(1 << 14);
  int64_t update = 0;
  while (file) {
    file.read(reinterpret_cast<char*>(norms.data()), static_cast<std::streamsize>(norms.size() * sizeof(float)));
    const auto count = static_cast<size_t>(file.gcount()) / sizeof(float);
    for (size_t i = 0; i < count; ++i) read(++update, norms[i]);
  }
  if (file.bad()) fail_errno("read", path);
}

}  // namespace tearless::harness
