#include "harness/submit/frozen_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

std::string hash_of(const fs::path& folder, const std::vector<std::string>& names) {
  Sha256 hash;
  for (const std::string& name : names) hash.update(name + " " + sha256_of_file(folder / name) + "\n");
  return hash.hex().substr(0, 16);
}

bool is_intact(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!fs::exists(folder / name)) return false;
  }
  return hash_of(folder, names) == folder.filename();
}

}  // namespace

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
  const fs::path kept = workspace.programs() / hash_of(original.parent_path(), names);
  const fs::path copy = (kept / original.filename()).lexically_relative(workspace.root());
  if (is_intact(kept, names)) return copy;

  const fs::path fresh = workspace.programs() / fmt::format(".{}.{}", kept.filename().string(), ::getpid());
  remove_recursively(fresh);
  make_folders(fresh);
  for (const std::string& name : names) write_program_unsynced(fresh / name, read_file(original.parent_path() / name));
  remove_recursively(kept);  // a damaged copy
  try {
    publish_folder(fresh, kept);
  } catch (const UserError&) {
    remove_recursively(fresh);
    if (!is_intact(kept, names)) throw;  // else another submission has published it meanwhile
  }
  return copy;
}

}  // namespace tearless::harness
