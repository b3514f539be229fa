#include "harness/plan/frozen_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "harness/folders/program_copies.h"

namespace tearless::harness {
namespace fs = std::filesystem;

fs::path freeze_program(const Workspace& workspace, const Program& program, const Probe& probe) {
  if (!probe.files) return program.path();
  const fs::path original = fs::canonical(program.path());
  std::vector<std::string> names = *probe.files;
  names.push_back(original.filename());
  for (const std::string& name : names) {
    if (fs::path(name).filename() != name) {
      fail("`{} probe` names the file \"{}\"; files beside the program have names without folders",
           program.path().string(), name);
    }
  }
  const fs::path kept = workspace.programs() / program_hash(original.parent_path(), names);
  const fs::path copy = (kept / original.filename()).lexically_relative(workspace.root());
  if (fault_of_program(workspace, fs::absolute(workspace.root() / copy)).empty()) return copy;

  const fs::path fresh = workspace.programs() / fmt::format(".{}.{}", kept.filename().string(), ::getpid());
  remove_recursively(fresh);
  make_folders(fresh);
  for (const std::string& name : names) write_program_unsynced(fresh / name, read_file(original.parent_path() / name));
  remove_recursively(kept);  // a damaged copy
  publish_folder(fresh, kept);
  return copy;
}

}  // namespace tearless::harness
