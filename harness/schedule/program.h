// The training program: an executable with the commands `check` and `probe`, which answer in JSON
// (docs/run_directory.md). Its third command, `train`, is started by the supervisor (supervisor.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/runs/input_files.h"

namespace tearless::harness {

/// One configuration to be checked.
struct CheckQuestion {
  nlohmann::json settings = nlohmann::json::object();  // flat dotted keys
  std::string folder;                                  // relative paths start here, except those …
  std::map<std::string, std::string> folders;          // … whose key is in this map: key → folder
  bool smoke = false;                                  // the same run cut down to a few updates
};

/// The line that is sent for `question`.
std::string line_of(const CheckQuestion& question);

/// The line for a question in which `key` has another value each time: `before`, the value as JSON, and `after`.
struct LineAround {
  std::string before, after;
};
LineAround line_around(CheckQuestion question, const std::string& key);

/// Either `error` and `key` are set, or everything else.
struct CheckAnswer {
  std::string error;  // one sentence; "" if the settings are accepted
  std::string key;    // the setting that `error` is about, or ""

  std::string id;                          // of the run, 16 hex digits
  std::string canonical;                   // text of run.toml
  std::string local;                       // text of local.toml
  bool waiting = false;                    // a corpus file is missing; the id is provisional
  std::string waiting_for;                 // the missing file and how to get it, one sentence
  std::optional<int64_t> parameters;       // of the model; unset until the data are prepared
  std::optional<int64_t> memory_bytes;     // memory that the run needs; unset likewise
  int64_t updates = 0;                     // the most updates that the run can make
  int64_t evaluations = 0;                 // the most evaluations, likewise; 0 if the program does not say
  std::string device;                      // "cpu" or "cuda"
  int threads = 1;                         // CPU threads
  std::string shape;                       // RunNeeds::shape; "" if it is not known
  std::shared_ptr<const InputFiles> data;  // null if the program does not name them
};

struct ProgramDevice {
  std::string kind, uuid, name;  // kind: "cuda"
  int64_t memory_bytes = 0;
};

/// The answer of `probe`.
struct Probe {
  std::string program, version;
  std::string runtime;   // what it runs on, such as "LibTorch 2.11.0"; "" if it does not say
  int64_t numerics = 0;  // changes when the same settings give other results: such results are not comparable
  std::vector<ProgramDevice> devices;
  // Names of the files beside the program that it needs; a copy of all of them elsewhere works as well. Unset: not
  // known.
  std::optional<std::vector<std::string>> files;
};

class Program {
 public:
  /// UserError if `path` is not executable.
  explicit Program(const std::filesystem::path& path);

  /// The first of: `asked` (--engine) if not empty, $TEARLESS_ENGINE, `of_grid` (`program` in the grid file), and
  /// tearless-engine in the folder of this executable.
  static Program find(const std::filesystem::path& asked, const std::optional<std::filesystem::path>& of_grid);

  const std::filesystem::path& path() const { return path_; }

  /// The answers to all questions, in their order. UserError as below.
  std::vector<CheckAnswer> check(const std::vector<CheckQuestion>& questions) const;

  /// Checks `count` configurations: sends the line question(i) (line_of()) for each i < count, and calls
  /// answered(i, answer) once for each. Several processes of the program run at the same time, each with a contiguous
  /// part of the questions; 0: as many as processes_for() says. So the order of the calls is that of i within a part
  /// only. UserError if a process fails, answers something else than JSON of the specified form, or leaves questions
  /// unanswered.
  void check(size_t count, const std::function<std::string(size_t)>& question,
             const std::function<void(size_t, CheckAnswer)>& answered, size_t processes = 0) const;

  /// How many processes check() uses for `questions` on a machine of `cores`: 1 while the questions are so few that the
  /// start of another process would take longer than its part of them.
  static size_t processes_for(size_t questions, size_t cores);

  /// UserError as for check().
  Probe probe() const;

 private:
  std::filesystem::path path_;
};

}  // namespace tearless::harness
