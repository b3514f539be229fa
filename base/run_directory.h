// The run directory, by which the harness and a training program communicate while a run trains: the names of its
// files, the exit codes, and the small JSON files that both programs read and write. The specification, also of the
// program's commands, is docs/run_directory.md.
#pragma once

#include <array>
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

/// Exit codes of a training program. Any other code means that it crashed.
enum ExitCode : int {
  kExitDone = 0,
  kExitSettingsRefused = 2,
  kExitDiverged = 3,
  kExitOutOfMemory = 4,
  kExitData = 66,     ///< an input file is missing, or is not the one that the run was planned with
  kExitMachine = 74,  ///< the machine failed, not the run: a full disk, an I/O error
  kExitStopped = 75,  ///< stopped on request, or replaced by a newer attempt
};

/// Environment variables that the supervisor sets for the training program: the attempt's number, and the file
/// descriptor of the inherited lock. A program started with them neither takes the lock nor makes the attempt's folder.
inline constexpr const char* kAttemptVariable = "TEARLESS_ATTEMPT";
inline constexpr const char* kLockVariable = "TEARLESS_LOCK_FD";

/// The paths inside one run directory, and the numbers in its folder names. Only make_attempt() creates anything.
class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path settings() const { return root_ / "run.toml"; }  ///< canonical settings; their hash is the id
  /// Settings that may differ between machines (paths, threads …). Rewritten before each attempt.
  std::filesystem::path local() const { return root_ / "local.toml"; }
  std::filesystem::path lock() const { return root_ / "lock"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  /// The gradient norm of every update, before clipping: fp32, little-endian, value n - 1 is of update n.
  std::filesystem::path gradient_norms() const { return root_ / "gradient_norms.f32"; }
  std::filesystem::path scores() const { return root_ / "scores.json"; }
  std::filesystem::path outputs() const { return root_ / "outputs"; }
  std::filesystem::path model() const { return root_ / "model.safetensors"; }  ///< parameters of a finished run
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path checkpoint(int64_t step) const;  ///< checkpoints/step-N
  std::filesystem::path attempts() const { return root_ / "attempts"; }
  std::filesystem::path attempt(int64_t number) const { return attempts() / std::to_string(number); }
  std::filesystem::path done() const { return root_ / "DONE"; }
  std::filesystem::path resume_check() const { return root_ / "resume.json"; }  ///< outcome of `tearless verify-resume`

  std::filesystem::path omitted() const { return root_ / "omitted.json"; }  ///< what the copy lacks (base/omitted.h)

  /// The highest attempt number, 0 if there is no attempt.
  int64_t newest_attempt() const;

  /// The highest number of an attempt with a start.json; 0 before the first. A supervisor that dies before it writes
  /// start.json leaves an empty folder; such an attempt never began and is ignored.
  int64_t newest_begun_attempt() const;

  /// True if the attempt has a start.json.
  bool has_begun(int64_t attempt) const;

  /// N of every checkpoints/step-N, in ascending order.
  std::vector<int64_t> checkpoint_steps() const;

  /// The highest N of checkpoints/step-N; 0 before the first checkpoint. This is the run's progress that a crash cannot
  /// undo.
  int64_t newest_checkpoint() const;

  /// The run's id, which is the name of its folder.
  std::string id() const;

  /// Makes attempts/<n> for the next free n, durably, and returns n. REQUIRES: the caller holds the run's lock.
  int64_t make_attempt() const;

 private:
  std::filesystem::path root_;
};

/// The process that supervises an attempt: the supervisor, or the program itself if it was started by hand. Nullopt
/// without a readable start.json.
std::optional<ProcessName> supervisor_of(const RunDirectory& run, int64_t attempt);

/// True while another process than this one supervises the newest attempt: it is alive even if its lock file was
/// removed. What this process has supervised before, has ended.
bool is_supervised(const RunDirectory& run);

/// Takes the run's lock for a new attempt. Nullopt while another attempt is alive: a process holds the lock, or
/// is_supervised(). UserError if the file cannot be created.
std::optional<LockFile> claim(const RunDirectory& run);

/// How far a run is, by its files alone. An attempt records it when it begins (write_start()), so that the work that
/// the attempt before it had lost stays known when the metrics of that work are cut off.
struct WorkDone {
  int64_t checkpoint = 0;   // step of the newest checkpoint; 0: no checkpoint
  int64_t step = 0;         // of the last complete line of metrics.jsonl; 0: no line
  int64_t reported_ns = 0;  // when metrics.jsonl was written last, nanoseconds since 1970; 0: there is no such file
};

WorkDone work_done(const RunDirectory& run);

/// The kind of this machine's processor, as start.json has it: "model name" of the first one.
std::string processor_name();

/// Writes attempts/<n>/start.json: the calling process, this machine, the time, how far the run is, and the fields of
/// `stamp` (device, program, version, numerics, program_file).
void write_start(const RunDirectory& run, int64_t attempt, nlohmann::json stamp);

/// What tells the files of a training program apart: the first 16 hex digits of the SHA-256 of its bytes. "" if it
/// cannot be read.
std::string file_hash(const std::filesystem::path& program);

/// The id of a run: the first 16 hex digits of the SHA-256 of its canonical settings.
std::string run_id(std::string_view canonical_text);

/// The id of the run that a run with these settings derives from: that of the line `derived.of = "<id>"`, the only
/// setting that the harness reads. "" for a run that is trained.
std::string derived_from(std::string_view canonical_text);

/// The most updates that a run makes: no double tells more of them apart.
inline constexpr int64_t kMaxUpdates = int64_t{1} << 53;

/// A number of updates, from 0 to kMaxUpdates, in JSON. Nullopt if `json` is anything else.
std::optional<int64_t> updates_in(const nlohmann::json& json);

/// The metrics of tearless-engine, as patterns, of which a point is of all updates since the one before it, means
/// mostly: `windows` of its answers to `check`. Builds before this one did not answer them; of their sweeps these are
/// taken.
inline constexpr auto kEngineWindows =
    std::to_array<const char*>({"grad_norm_window_mean.*", "train.bpc", "train.grad_norm_window_mean", "train.loss",
                                "train.loss_sum", "train.ppl*"});

/// The file DONE, which a training program writes last. A run with a DONE is never trained again.
struct Done {
  std::string id;       // of the run; "" if the program does not name it
  std::string outcome;  // "done" or "diverged"
  int64_t step = 0;     // number of the update at which training ended or diverged
  std::string reason;   // why training ended there: "max_epochs", "early_stop" …, or the quantity that was not finite
  std::map<std::string, std::string> files;  // result file, relative to the run directory → SHA-256
};

/// Reads DONE; nullopt if the run has no DONE. UserError if it is damaged.
std::optional<Done> read_done(const RunDirectory& run);

/// Writes the result files `files`, name relative to the run directory → bytes, and then scores.json. Returns the names
/// of all of them, for write_done().
std::vector<std::string> write_results(const RunDirectory& run, const nlohmann::json& scores,
                                       const std::map<std::string, std::string>& files);

/// Hashes the result files `names` (relative to the run directory) and writes DONE atomically. `inputs`: what the
/// result was made from besides the settings → SHA-256; a run that derives from no other has none.
void write_done(const RunDirectory& run, std::string outcome, int64_t step, std::string reason,
                const std::vector<std::string>& names, const std::map<std::string, std::string>& inputs = {});

/// The first result file that is missing and that omitted.json does not list with DONE's checksum, or whose checksum
/// differs from DONE's; or "". UserError if omitted.json was edited.
std::string changed_result_file(const RunDirectory& run, const Done& done);
/// The bytes of the result file `name`, relative to the run directory. UserError if the run is not done, or the file is
/// missing, left out of the copy, or not as it was written.
std::string read_result(const RunDirectory& run, const std::string& name);
/// Throws UserError for a result file that is missing, left out of the copy, or not as it was written.
[[noreturn]] void refuse_changed(const RunDirectory& run, const std::string& name);

}  // namespace tearless
