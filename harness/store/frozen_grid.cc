#include "harness/store/frozen_grid.h"

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/settings.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

fs::path frozen_file(const Workspace& workspace, const std::string& sweep) {
  return workspace.sweep(sweep) / "merged.toml";
}

/// Puts a line with a checksum in front of a text; it covers the sweep too, so that no other sweep's text has it.
std::string with_checksum(const std::string& sweep, std::string_view text) {
  const std::string checksum = sha256(fmt::format("{}\n{}", sweep, text));
  return fmt::format("# Sweep {} as it was submitted; not to be edited. SHA-256: {}\n{}", sweep, checksum, text);
}

}  // namespace

void freeze_grid(const Workspace& workspace, const std::string& sweep, const Grid& grid) {
  const std::string text = fmt::format("{}\n[submitted]\nfile = {}\nfolder = {}\n", grid.merged,
                                       toml_value(grid.file.string()), toml_value(grid.folder.string()));
  make_folders(workspace.sweep(sweep));
  write_atomically(frozen_file(workspace, sweep), with_checksum(sweep, text));
}

Grid frozen_grid(const Workspace& workspace, const std::string& sweep) {
  const fs::path file = frozen_file(workspace, sweep);
  const std::string text = read_file(file);
  if (text != with_checksum(sweep, std::string_view(text).substr(text.find('\n') + 1))) {
    fail("{} is damaged, was changed, or is of another sweep; submit the sweep's grid again", file.string());
  }
  return parse_grid(text, file);
}

}  // namespace tearless::harness
