// Reads the attempts, metrics and scores in a run directory (docs/run_directory.md). Does not use the database. A file
// that is missing, incomplete or fails its checksum is treated as absent; a scores.json that cannot be read is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/run_directory.h"
#include "harness/runs/environment.h"
#include "harness/runs/lost_work.h"
#include "harness/runs/states.h"

namespace tearless::harness {

/// One attempt: the content of its files, and the verdict on it once it has ended.
struct AttemptRecord {
  int64_t number = 0;
  std::string outcome;                  // "" while it runs, "done", "diverged", or the name of a FailureClass
  std::string reason;                   // of the outcome, one phrase
  std::optional<int64_t> code, signal;  // of the program; unset while it runs, and if the supervisor died too
  std::string asked;                    // "stop" or "stall" if the program was asked to end, else ""
  bool killed_for_memory = false;       // the kernel's OOM killer killed a process of its control group while it ran
  bool disk_full = false;               // the run folder's disk was full when the program ended
  std::string phase;                    // the last phase that the program reported; "" if it reports none
  int64_t checkpoint = 0;               // step of the newest checkpoint when it ended
  std::string started_at, ended_at;     // UTC; "" if unknown
  // The machine; "cpu" or the name of the GPU; "model name" of the CPU; the version of the training program.
  std::string host, device, processor, version;
  int64_t numerics = 0;               // Probe::numerics of the training program
  std::string arithmetic = {};        // the library that its numbers come from, as the program names it; "": unknown
  std::string program_file = {};      // file_hash() of the training program when it began; "": unknown
  nlohmann::json measured;            // measured.json (speed, memory …), or null
  std::optional<LostWork> lost = {};  // unset while it runs, if it ended with a result, and if it is not known
};

/// A line of metrics.jsonl.
struct MetricLine {
  int64_t position = 0;  // byte offset of the line
  int64_t step = 0;      // updates made
  std::string name;
  double value = 0;  // NaN where the line has null
};

/// Files of an attempt that was granted to a machine (grants/grant.h): the harness's own.
inline constexpr const char* kGrantFile = "grant.json";
inline constexpr const char* kClaimedFile = "claimed";
inline constexpr const char* kEndedFile = "ended.json";

/// The worker that has claimed a granted attempt; "" if nobody has, or its name is not seen here to its end.
std::string claimant_of(const RunDirectory& run, int64_t attempt);

/// The run directory of an attempt on another machine, attempts/<n>/work.<worker>/<id>; the worker is the one that has
/// claimed it. It may not be there.
RunDirectory work_of(const RunDirectory& run, int64_t attempt);

/// The run directory in which the attempt works, or would: work_of() it if that is there and the run has no result yet,
/// else the run's own. Metrics, checkpoints and gradient norms are there.
RunDirectory folder_of(const RunDirectory& run, int64_t attempt);

/// What the service has found out about the end of a granted attempt, if no supervisor recorded it (ended.json).
struct GrantEnd {
  FailureClass failure = FailureClass::kNone;
  std::string reason = {};
};
GrantEnd grant_end_of(const RunDirectory& run, int64_t attempt);

/// The UUID of an attempt's CUDA device; "" if it runs on the CPU.
std::string cuda_device_of(const RunDirectory& run, int64_t attempt);
/// The variables that an attempt has from its submission (runs/environment.h).
SubmittedEnvironment environment_of(const RunDirectory& run, int64_t attempt);
/// The cores that the attempt is bound to; empty if it is not.
std::vector<int> cores_of(const RunDirectory& run, int64_t attempt);

/// The phase that the program reported last (attempts/<n>/phase), or "".
std::string phase_of(const RunDirectory& run, int64_t attempt);

/// Files of an attempt that tables read and DONE does not name: exit.json has their checksums, as "files".
nlohmann::json checksums_for_exit(const RunDirectory& run, int64_t attempt);
/// The first of them that is not what exit.json says of it, "attempts/1/measured.json"; "" if none is, as where there
/// is no exit.json, or one of an older version.
std::string changed_attempt_file(const RunDirectory& run, int64_t attempt);
/// "attempts/1/start.json" or "attempts/1/exit.json" if that is gone, else "". The attempt that left the result (DONE)
/// had both. Another had what its other files follow: a supervisor that was killed writes no exit.json.
std::string missing_attempt_record(const RunDirectory& run, int64_t attempt);

/// Reads start.json, exit.json and measured.json of an attempt. Leaves `outcome`, `reason` (see verdict.h) and `lost`
/// empty.
AttemptRecord read_attempt(const RunDirectory& run, int64_t attempt);

/// What the last bits of an attempt's numbers depend on besides settings and build: device, processor and arithmetic.
std::string machine_of(const AttemptRecord& attempt);

/// The number of kinds in a set of machine_of(). A text of which a part is not known (an attempt was killed before it
/// had written it) is no kind beside another that may be the same.
size_t kinds_in(const std::set<std::string>& machines);

/// Which of the versions of a program made it: "version 2, file 1a2b3c4d"; "" if nothing is known.
std::string program_of(const AttemptRecord& attempt);

/// How a line of log.txt begins in which the supervisor names processes that the program left behind.
inline constexpr std::string_view kLeftBehind = "tearless supervise: the program has ended and left running ";

/// The last line of log.txt that is neither blank nor begins with kLeftBehind, as valid UTF-8, or "".
std::string last_log_line(const RunDirectory& run, int64_t attempt);

/// What a scores.json says.
struct Scores {
  std::map<std::string, double> numbers = {};
  // Name → what it has instead: "null", "NaN", "Infinity", "1e999"; of a perplexity that has overflowed, that it has.
  std::map<std::string, std::string> no_numbers = {};
};

/// A text of scores.json as JSON: Python's json and others write NaN and Infinity, which are none, and numbers that no
/// double holds. They become texts.
std::string scores_as_json(std::string_view text);

/// The scores in a text of `file`, a scores.json. UserError, naming file and key, if scores_as_json() of it is not a
/// JSON object, has a key twice, or has a value that is neither a number, null, nor a text that stands for such a
/// number.
Scores scores_in(std::string_view text, const std::filesystem::path& file);

/// Those of scores.json; empty if there is no such file.
Scores read_scores(const RunDirectory& run);

/// A part of metrics.jsonl.
struct MetricsRead {
  /// Lines in which the same is not read.
  struct Unread {
    int64_t lines = 0;
    int64_t first = 0;  // number of the first one, from 1 where reading began
  };

  int64_t from = 0;                      // the byte at which reading began
  std::vector<MetricLine> lines;         // without lines that are not valid metrics
  std::map<std::string, Unread> unread;  // what is not read: whole lines, or keys beside step, name and value
  int64_t to = 0;                        // the byte after the last complete line
};

/// What is not read of a metrics.jsonl that was read from its beginning, a sentence each: "metrics.jsonl: not read in 3
/// lines, first in line 4: a "value" that is no number".
std::vector<std::string> sentences_of(const std::map<std::string, MetricsRead::Unread>& unread);

/// Those of the newest attempt at its end, as its supervisor has recorded them.
std::vector<std::string> unread_metrics(const RunDirectory& run);

/// Reads the complete lines of metrics.jsonl from byte `from` on; from 0 if the file has become shorter than `from`.
MetricsRead read_metrics(const RunDirectory& run, int64_t from);

}  // namespace tearless::harness
