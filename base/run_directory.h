// The run directory: the names of its files, the exit codes, and the small JSON records that both programs read and
// write. The contract itself, for people and foreign programs, is docs/run_directory.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/lock_file.h"
#include "base/process_name.h"

namespace tearless {

/// What a program's exit tells the harness.
enum ExitCode : int {
  kExitDone = 0,
  kExitSettingsRefused = 2,
  kExitDiverged = 3,
  kExitOutOfMemory = 4,
  kExitMachine = 74,  ///< the machine failed, not the run: a full disk, an I/O error
  kExitStopped = 75,
};

/// Set by the supervisor: the attempt's number, and the descriptor of the lock that the program inherits. The program
/// then neither takes the lock nor makes the attempt's folder.
inline constexpr const char* kAttemptVariable = "TEARLESS_ATTEMPT";
inline constexpr const char* kLockVariable = "TEARLESS_LOCK_FD";

/// Paths inside one run directory. Makes nothing.
class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path settings() const { return root_ / "run.toml"; }  ///< canonical text: its hash is the id
  /// Paths, threads …: written anew before each attempt.
  std::filesystem::path local() const { return root_ / "local.toml"; }
  std::filesystem::path lock() const { return root_ / "lock"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path scores() const { return root_ / "scores.json"; }
  std::filesystem::path outputs() const { return root_ / "outputs"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path checkpoint(int64_t step) const;  ///< checkpoints/step-N
  std::filesystem::path attempts() const { return root_ / "attempts"; }
  std::filesystem::path attempt(int64_t number) const { return attempts() / std::to_string(number); }
  std::filesystem::path done() const { return root_ / "DONE"; }

  /// The highest attempt number there is, 0 where there is none.
  int64_t newest_attempt() const;
  /// The highest one with a start.json. A supervisor that dies before it has written that leaves an empty folder: an
  /// attempt that never began, which counts for nothing.
  int64_t newest_begun_attempt() const;
  bool has_begun(int64_t attempt) const;
  /// N of every checkpoints/step-N, in ascending order.
  std::vector<int64_t> checkpoint_steps() const;
  /// The last of them, 0 where there is none: how far the run has come for good.
  int64_t newest_checkpoint() const;
  /// The run's id: the name of its folder.
  std::string id() const;
  /// Makes attempts/<n> for the next free n and returns n. Hold the lock.
  int64_t make_attempt() const;

 private:
  std::filesystem::path root_;
};

/// Who watches over an attempt: its supervisor, or the program itself where it was started by hand. Nothing where there
/// is no start.json.
std::optional<ProcessName> supervisor_of(const RunDirectory& run, int64_t attempt);

/// The run's lock, for a new attempt; nothing where another one is alive: it holds the lock, or it is the newest
/// attempt's supervisor, which lives on although its lock file was removed. UserError where the file cannot be made.
std::optional<LockFile> claim(const RunDirectory& run);

/// Writes attempts/<n>/start.json: the calling process, this machine, the time, the newest checkpoint, and the fields
/// of `stamp` (device, program, version, numerics).
void write_start(const RunDirectory& run, int64_t attempt, nlohmann::json stamp);

/// The id of a canonical text: the first 16 hex digits of its SHA-256.
std::string run_id(std::string_view canonical_text);

/// DONE: written last; a run with a DONE is never trained again.
struct Done {
  std::string id;       // of the run; "" in folders of older versions and of programs that do not name it
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

}  // namespace tearless
