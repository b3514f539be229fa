#include "harness/runs/input_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/hash.h"

namespace tearless::harness {
namespace fs = std::filesystem;

std::string fault_of(const InputFiles& files) {
  for (const auto& [file, planned] : files) {
    try {
      std::error_code unreachable;
      const fs::file_status status = fs::status(file, unreachable);
      if (!fs::exists(status)) {
        return fmt::format("{} is missing; the run continues when the file with the SHA-256 {} is back", file, planned);
      }
      if (!fs::is_regular_file(status)) fail("{} is not a regular file", file);  // a pipe would never end
      if (const std::string now = sha256_of_file(file); now != planned) {
        return fmt::format(
            "{} has the SHA-256 {}, but the run was planned with {}; the run continues when that file is "
            "back",
            file, now, planned);
      }
    } catch (const UserError& unreadable) {
      return unreadable.what();
    }
  }
  return "";
}

FileStamps stamps_of(const InputFiles& files) {
  FileStamps stamps;
  for (const auto& [file, planned] : files) stamps.emplace(file, stamp_of(file));
  return stamps;
}

}  // namespace tearless::harness
