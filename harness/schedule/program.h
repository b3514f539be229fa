// The training program: an executable with the commands `check` and `probe`, which answer in JSON
// (docs/run_directory.md). Its third command, `train`, is started by the supervisor (supervisor.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

/// One configuration to be checked.
struct CheckQuestion {
  std::map<std::string, nlohmann::json> settings;  // flat dotted keys
  std::string folder;                              // relative paths start here, except those …
  std::map<std::string, std::string> folders;      // … whose key is in this map: key → folder
  bool smoke = false;                              // the same run cut down to a few updates
};

/// Either `error` and `key` are set, or everything else.
struct CheckAnswer {
  std::string error;  // one sentence; "" if the settings are accepted
  std::string key;    // the setting that `error` is about, or ""

  std::string id;                       // of the run, 16 hex digits
  std::string canonical;                // text of run.toml
  std::string local;                    // text of local.toml
  bool waiting = false;                 // a corpus file is missing; the id is provisional
  std::string waiting_for;              // the missing file and how to get it, one sentence
  std::optional<int64_t> parameters;    // of the model; unset until the data are prepared
  std::optional<int64_t> memory_bytes;  // memory that the run needs; unset likewise
  int64_t updates = 0;                  // the most updates that the run can make
  std::string device;                   // "cpu" or "cuda"
  int threads = 1;                      // CPU threads
};

struct ProgramDevice {
  std::string kind, uuid, name;  // kind: "cuda"
  int64_t memory_bytes = 0;
};

/// The answer of `probe`.
struct Probe {
  std::string program, version;
  int64_t numerics = 0;  // changes when the same settings give other results: such results are not comparable
  std::vector<ProgramDevice> devices;
};

class Program {
 public:
  /// UserError if `path` is not executable.
  explicit Program(const std::filesystem::path& path);

  /// The first of: `asked` (--engine) if not empty, $TEARLESS_ENGINE, `of_grid` (`program` in the grid file), and
  /// tearless-engine in the folder of this executable.
  static Program find(const std::filesystem::path& asked, const std::optional<std::filesystem::path>& of_grid);

  const std::filesystem::path& path() const { return path_; }

  /// Checks all questions with one process; answers are in the order of the questions. UserError if the program fails,
  /// answers something else than JSON of the specified form, or leaves questions unanswered.
  std::vector<CheckAnswer> check(const std::vector<CheckQuestion>& questions) const;

  /// As above, streaming: reads questions from `next` until it returns nullopt, and calls `answered` in the same order.
  /// The program may answer a question while later ones are still being sent.
  void check(const std::function<std::optional<CheckQuestion>()>& next,
             const std::function<void(CheckAnswer)>& answered) const;

  /// UserError as for check().
  Probe probe() const;

 private:
  std::filesystem::path path_;
};

}  // namespace tearless::harness
