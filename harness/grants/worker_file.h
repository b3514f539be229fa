// What a worker tells the service: lines of JSON that it appends to a file of its own, queue/workers/<name>.jsonl.
//
//   {"worker": name, "host", "executor", "job", "cores", "memory_bytes", "devices": [{"name", "memory_bytes"}, …],
//    and, if there are any, "processor", "until", "secrets": [name of a variable, …], "shared": true}          first
//   {"beat": k}                                                                                     every 5 s
//   {"claimed": id, "attempt": n}
//   {"ended": id, "attempt": n, "fault": "", "files": {"start.json": SHA-256, "exit.json": …, "DONE": …}}
//   {"bye": why}                                                                                    last
//
// Any growth of the file is a sign of life: no clock of another host is read, and no time is written. The lines are
// hints that come soon; a claim and the end of an attempt are facts by other files (grant.h, publication.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json_members.h"
#include "harness/grants/run_files.h"
#include "harness/runs/needs.h"

namespace tearless::harness {

/// The executor that every workspace has: workers that people start.
inline constexpr const char* kWorkers = "workers";

struct WorkerDevice {
  std::string name;
  int64_t memory_bytes = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerDevice, name, memory_bytes)

struct WorkerFacts {
  std::string name;  // "<host>-<8 random hex digits>": drawn at each start, so that no two processes have one
  std::string host;
  std::string executor = kWorkers;      // whose runs it takes
  std::string job = {};                 // of a cluster, as its script calls it; "": a person has started it
  int64_t cores = 0, memory_bytes = 0;  // memory 0: not known
  std::vector<WorkerDevice> devices = {};
  std::string processor = {};          // as Needs::kind
  std::optional<double> until = {};    // seconds that it has in all; unset: it has no end
  std::set<std::string> secrets = {};  // names of those in its environment
  bool shared = false;                 // it trusts whoever may write the workspace
};
TEARLESS_JSON(WorkerFacts, (host, executor, job, cores, memory_bytes, devices), (processor, until, secrets, shared))

/// True if the worker may be given runs with these needs: it takes those of their executor, and has a GPU if they need
/// one, of their kind, with as much memory as the user has declared, and more than `memory_above`; else its machine
/// does; and its environment has their secrets.
bool fits(const WorkerFacts& worker, const Needs& needs, int64_t memory_above);

/// What became of an attempt.
struct AttemptReport {
  std::string id;
  int64_t attempt = 0;
  std::string fault;                              // why nothing was recorded, one sentence; "" if the files say it
  std::map<std::string, std::string> files = {};  // start.json and exit.json, as far as they are there → SHA-256
  std::optional<RunFiles> result = {};            // that it has left in its work folder
};

/// A name for a worker of this machine.
std::string new_worker_name();

/// The worker's side. What a full disk does not take is written with the next line.
class WorkerFile {
 public:
  /// Makes workers/<facts.name>.jsonl with the first line. UserError if that fails.
  WorkerFile(const std::filesystem::path& workers, const WorkerFacts& facts);
  void beat();
  void claimed(const std::string& id, int64_t attempt);
  void ended(const AttemptReport& report);
  void bye(std::string_view why);

 private:
  void say(const std::string& line);

  AppendFile file_;
  std::string unwritten_;
  int64_t beats_ = 0;
};

struct WorkerNews {
  bool grew = false;
  std::optional<WorkerFacts> facts = {};
  std::vector<std::pair<std::string, int64_t>> claims = {};  // run, attempt
  std::vector<AttemptReport> ends = {};
  std::string bye = {};  // why it ended; "" while it has not said so
};

/// The service's side.
class WorkerTail {
 public:
  explicit WorkerTail(std::filesystem::path file) : file_(std::move(file)) {}

  /// What was appended since the last call. An incomplete last line is read later; a line that is not understood is
  /// skipped. A file that has become shorter (a stale size) is read on when it is longer again.
  WorkerNews read();

 private:
  std::filesystem::path file_;
  int64_t size_ = 0;  // bytes there were
  int64_t read_ = 0;  // bytes of whole lines that were read
};

}  // namespace tearless::harness
