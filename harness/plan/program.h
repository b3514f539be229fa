// The training program: an executable with the commands `check` and `probe`, which answer in JSON
// (docs/run_directory.md). Its third command, `train`, is started by the supervisor (harness/launch/supervisor.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/runs/run.h"
#include "harness/runs/run_result.h"

namespace tearless::harness {

/// How to come by tearless-engine on a machine with this version of glibc.
std::string how_to_get_engine(const std::string& glibc);

/// The line that is sent to `check`.
std::string line_of(const RunSpec& spec);

/// Either `error` and `key` are set, or `run`, without coordinates, seed and rank.
struct CheckAnswer {
  std::string error;  // one sentence; "" if the settings are accepted
  std::string key;    // the setting that `error` is about, or ""
  Run run;
  using Names = std::shared_ptr<const std::vector<std::string>>;
  Names scores = {}, metrics = {}, windows = {};  // names or patterns; null: the program does not say
};

/// The answer of `probe`.
struct Probe {
  std::string program, version;
  std::string runtime;   // what it runs on, such as "LibTorch 2.11.0"; "" if it does not say
  int64_t numerics = 0;  // changes when the same settings give other results: such results are not comparable
  // What the program is, as a part of what its runs are: the program's own text, else name and version. "" for
  // tearless-engine, whose runs `numerics` tells apart.
  std::string identity;
  // The files that the program needs beside it, by their names, or by absolute paths if they lie elsewhere; a copy of
  // all of them works as well. Unset: not known.
  std::optional<std::vector<std::string>> files;
  std::string home;  // a folder that it needs and that is not copied: the copy is told its path; "": none

  nlohmann::json stamp() const;  ///< what start.json of its attempts has of it
};

class Program {
 public:
  /// UserError if `path` cannot be executed: it is missing, a folder, not executable, or its interpreter is missing.
  explicit Program(const std::filesystem::path& path);

  /// The first of: `asked` (--engine) if not empty, `of_grid` (`program` in the grid file), $TEARLESS_ENGINE, and
  /// tearless-engine in the folder of this executable.
  static Program find(const std::filesystem::path& asked, const std::optional<std::filesystem::path>& of_grid);

  const std::filesystem::path& path() const { return path_; }

  /// The answers about spec(i) for each i < count, in this order. UserError if the program fails, prints something else
  /// than JSON of the specified form, or gives fewer or more answers than questions.
  std::vector<CheckAnswer> check(size_t count, const std::function<RunSpec(size_t)>& spec) const;

  /// Asked once. UserError as for check().
  const Probe& probe() const;

  /// As results are compared with it. Asks probe().
  ProgramNow now() const;

 private:
  std::filesystem::path path_;
  mutable std::optional<Probe> probe_;
};

}  // namespace tearless::harness
