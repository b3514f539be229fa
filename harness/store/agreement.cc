#include "harness/store/agreement.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/verdict.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

bool has_ended_well(const RunResult& result) {
  return result.state == RunState::kDone || result.state == RunState::kDiverged;
}

// How DONE or scores.json disagree with a result of the store; "" if they agree.
std::string difference_from_folder(const RunDirectory& run, const RunResult& result) {
  const std::optional<Done> done = read_done(run);
  if (!done) return "its folder has no DONE";
  if (done->outcome != name_of(result.state)) {
    return fmt::format("the database says {}, its DONE {}", name_of(result.state), done->outcome);
  }
  if (result.state == RunState::kDiverged && done->step != result.diverged_step) {
    return fmt::format("the database says that it diverged at update {}, its DONE at {}", result.diverged_step,
                       done->step);
  }
  const auto checksum = done->files.find("scores.json");
  if (checksum != done->files.end() &&
      (!fs::exists(run.scores()) || sha256_of_file(run.scores()) != checksum->second)) {
    return "its scores.json is not what the run had written";
  }
  if (read_scores(run) != result.scores) return "the database and its scores.json hold different scores";
  return "";
}

}  // namespace

bool is_unrecorded(const Workspace& workspace, const RunResult& result) {
  const RunDirectory run = workspace.run(result.id);
  if (has_ended_well(result) || result.id.empty() || !fs::exists(run.done())) return false;
  if (LockFile::is_held(workspace.lock()) || LockFile::is_held(run.lock())) return false;
  const std::optional<Verdict> done = verdict_of_done(run);
  return done && done->state != RunState::kFailed;
}

RunResult checked_result(const Store& store, const Workspace& workspace, const std::string& id,
                         std::optional<int64_t> numerics_now) {
  RunResult result = store.result_of(id, numerics_now);
  const RunDirectory run = workspace.run(id);
  if (!fs::exists(run.root())) return result;
  result.resume = read_resume_check(run);
  if (has_ended_well(result)) {
    const std::string difference = difference_from_folder(run, result);
    if (difference.empty()) return result;
    fail("run {}: {}; to see what is wrong and what to do: tearless verify --workspace {}", id, difference,
         workspace.root().string());
  }
  if (!result.state && run.newest_begun_attempt() > 0 && !LockFile::is_held(workspace.lock())) {
    fail(
        "run {}: its folder has attempts, but it is not in the database; `tearless run` of its grid records it, "
        "or, if the database is damaged: tearless verify --workspace {}",
        id, workspace.root().string());
  }
  return result;
}

}  // namespace tearless::harness
