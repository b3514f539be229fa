#include "harness/runs/old_checkpoints.h"

#include <algorithm>

#include "base/files.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// As tearless-engine names checkpoints that it is writing or removing.
constexpr std::string_view kTemporary = "tmp-";
constexpr std::string_view kStep = "step-";

std::optional<int64_t> selected_step(const RunDirectory& run) {
  const std::map<std::string, double> scores = read_scores(run);
  const auto step = scores.find("selected_step");
  if (step == scores.end()) return std::nullopt;
  return static_cast<int64_t>(step->second);
}

}  // namespace

OldCheckpoints old_checkpoints(const RunDirectory& run, const KeptCheckpoints& keep) {
  OldCheckpoints old;
  for (const std::string& name : folders_in(run.checkpoints())) {
    if (name.starts_with(kTemporary)) old.folders.push_back(run.checkpoints() / name);
  }
  std::vector<int64_t> steps = run.checkpoint_steps();
  steps.resize(steps.size() - std::min(steps.size(), static_cast<size_t>(keep.newest)));
  const std::optional<int64_t> selected = keep.selected ? selected_step(run) : std::nullopt;
  for (const int64_t step : steps) {
    if (step == selected) {
      old.selected_bytes = bytes_in(run.checkpoint(step));
    } else {
      old.folders.push_back(run.checkpoint(step));
    }
  }
  for (const fs::path& folder : old.folders) old.bytes += bytes_in(folder);
  return old;
}

void remove_checkpoints(const OldCheckpoints& old) {
  for (const fs::path& folder : old.folders) {
    fs::path doomed = folder;
    if (const std::string name = folder.filename().string(); name.starts_with(kStep)) {
      // Renamed first: a partly removed folder must not look like a checkpoint.
      doomed = folder.parent_path() / (std::string(kTemporary) + name.substr(kStep.size()));
      remove_recursively(doomed);
      rename_file(folder, doomed);
    }
    remove_recursively(doomed);
  }
}

}  // namespace tearless::harness
