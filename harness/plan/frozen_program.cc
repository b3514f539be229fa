#include "harness/plan/frozen_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "harness/folders/program_copies.h"

namespace tearless::harness {
namespace fs = std::filesystem;

fs::path freeze_program(const Workspace& workspace, const Program& program, const Probe& probe) {
  if (!probe.files) return program.path();
  const fs::path original = fs::canonical(program.path());
  std::map<std::string, fs::path> files = {{original.filename(), original}};
  std::map<std::string, std::string> sums = {{original.filename(), sha256_of_file(original)}};
  for (const fs::path name : *probe.files) {
    if (!name.is_absolute() && name.filename() != name) {
      fail(
          "`{} probe` names the file \"{}\"; a file beside the program has a name without folders, and one elsewhere "
          "an absolute path",
          program.path().string(), name.string());
    }
    const fs::path file = original.parent_path() / name;  // `name` itself if it is absolute
    if (const auto [at, is_new] = files.emplace(name.filename(), file); !is_new && at->second != file) {
      fail("`{} probe` names {} and {}, and a copy can have one file of that name beside it", program.path().string(),
           at->second.string(), file.string());
    }
    sums[name.filename()] = sha256_of_file(file);
  }
  const std::string home_file = original.filename().string() + ".home", home = probe.home + "\n";
  if (!probe.home.empty()) sums[home_file] = sha256(home);
  const fs::path kept = workspace.programs() / program_hash(sums);
  const fs::path copy = (kept / original.filename()).lexically_relative(workspace.root());
  if (fault_of_program(workspace, fs::absolute(workspace.root() / copy)).empty()) return copy;

  const fs::path fresh = workspace.programs() / fmt::format(".{}.{}", kept.filename().string(), ::getpid());
  remove_recursively(fresh);
  make_folders(fresh);
  for (const auto& [name, file] : files) write_program_unsynced(fresh / name, read_file(file));
  if (!probe.home.empty()) write_program_unsynced(fresh / home_file, home);
  remove_recursively(kept);  // a damaged copy
  publish_folder(fresh, kept);
  return copy;
}

}  // namespace tearless::harness
