// `tearless verify FILE.tar.gz`: whether an artefact (artifact_files.h) is as it was made, and with --again whether
// this build prints the same of its runs. The same build must print the same bytes. Of another build the values must be
// the same: what CSV and JSON have, and the numbers and verdicts of all texts, pages and pictures, in their order.
// Files with other words are named and accepted; a page that differs in the build's name alone does not differ.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/commands/artifact_files.h"

namespace tearless::harness {

struct ArtifactCheck {
  bool is_artifact = true;  // false: the archive has no manifest, and nothing else is set
  std::string made_by = {}, made_at = {};
  ArtifactCounts counts = {};
  size_t members = 0;                    // files that the manifest names
  std::vector<std::string> damage = {};  // one sentence each: what is not as it was packed; then nothing was made again
  std::vector<std::string> values = {};  // what was made again with another value, one phrase each
  std::vector<std::string> texts = {};   // files with the same values and other bytes
  bool same_build = false;

  bool is_sound() const { return damage.empty() && values.empty() && (texts.empty() || !same_build); }
};

/// UserError if the fault is not the archive's: it is no archive, or this machine or build cannot make its tables
/// again.
ArtifactCheck check_artifact(const std::filesystem::path& archive, bool again);

/// Compares a file with what was made again: puts phrases into `values`, or its name into `texts`.
void compare_printed(const std::string& name, const std::string& packed, const std::string& made, ArtifactCheck& check);

}  // namespace tearless::harness
