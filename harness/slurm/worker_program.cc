#include "harness/slurm/worker_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "harness/grants/places.h"
#include "harness/slurm/slurm.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// Of earlier builds: copies that no script of a job names.
void remove_unneeded(const fs::path& copies, const fs::path& jobs) {
  std::string scripts;
  for (const fs::path& file : entries_of(jobs)) {
    if (file.extension() == ".sh") scripts += read_if_there(file).value_or("");
  }
  for (const fs::path& copy : entries_of(copies)) {
    if (scripts.find(copy.filename().string()) == std::string::npos) remove_recursively(copy);
  }
}

}  // namespace

fs::path worker_program(const Workspace& workspace) {
  constexpr size_t kDigits = 16;
  const std::string bytes = read_file("/proc/self/exe");
  const fs::path folder = fs::absolute(queue_of(workspace) / "bin").lexically_normal();
  const fs::path kept = folder / sha256(bytes).substr(0, kDigits), copy = kept / "tearless";
  if (fs::exists(copy)) return copy;
  remove_unneeded(folder, jobs_folder(workspace));
  const fs::path fresh = folder / fmt::format(".{}.{}", kept.filename().string(), ::getpid());
  make_folders(fresh);
  write_program_unsynced(fresh / "tearless", bytes);
  remove_recursively(kept);
  publish_folder(fresh, kept);
  return copy;
}

}  // namespace tearless::harness
