// The run directory: the names of its files, the exit codes, and the small JSON records that both programs read and
// write. The contract itself, for people and foreign programs, is docs/run_directory.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

/// What a program's exit tells the harness.
enum ExitCode : int {
  kExitDone = 0,
  kExitSettingsRefused = 2,
  kExitDiverged = 3,
  kExitOutOfMemory = 4,
  kExitStopped = 75,
};

/// Set by the supervisor: the attempt's number. The engine then neither takes the lock (it has inherited it) nor makes
/// the attempt's folder.
inline constexpr const char* kAttemptVariable = "TEARLESS_ATTEMPT";

/// Paths inside one run directory. Makes nothing.
class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path settings() const { return root_ / "run.toml"; }  ///< canonical text: its hash is the id
  std::filesystem::path local() const {
    return root_ / "local.toml";
  }  ///< paths, threads …: rewritten before an attempt
  std::filesystem::path lock() const { return root_ / "lock"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path scores() const { return root_ / "scores.json"; }
  std::filesystem::path outputs() const { return root_ / "outputs"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path attempts() const { return root_ / "attempts"; }
  std::filesystem::path attempt(int64_t number) const { return attempts() / std::to_string(number); }
  std::filesystem::path done() const { return root_ / "DONE"; }

  /// The highest attempt number there is, 0 where there is none.
  int64_t newest_attempt() const;
  /// Makes attempts/<n> for the next free n and returns n. Hold the lock.
  int64_t make_attempt() const;

 private:
  std::filesystem::path root_;
};

/// The id of a canonical text: the first 16 hex digits of its SHA-256.
std::string run_id(std::string_view canonical_text);

/// DONE: written last; a run with a DONE is never trained again.
struct Done {
  std::string outcome;  // "done" or "diverged"
  int64_t step = 0;     // the update at which training ended or diverged
  std::string reason;   // why training ended there: "max_epochs", "early_stop" …, or what was not finite
  std::map<std::string, std::string> files;  // result file, relative to the run directory → SHA-256
};
/// Nothing where there is no DONE; UserError where it cannot be understood.
std::optional<Done> read_done(const RunDirectory& run);
/// Hashes the result files `names` and publishes DONE.
void write_done(const RunDirectory& run, std::string outcome, int64_t step, std::string reason,
                const std::vector<std::string>& names);
/// The first result file whose bytes are not those that DONE recorded, or "".
std::string changed_result_file(const RunDirectory& run, const Done& done);

/// The boot id of this machine and the start time of a process (clock ticks since boot): with the pid they name a
/// process once and for all.
std::string boot_id();
std::optional<int64_t> process_start_ticks(int64_t pid);

}  // namespace tearless
