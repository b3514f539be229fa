// The workers of a workspace, as their files tell of them (worker_file.h). No clock but the caller's is read: a
// worker's silence is counted since its file was seen to grow.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/grants/worker_file.h"

namespace tearless::harness {

class Workers {
 public:
  /// Seconds without a sign of life after which a worker's attempts are given up.
  static constexpr double kGone = 600;

  /// `folder`: of the files. `now`: seconds of a steady clock.
  Workers(std::filesystem::path folder, std::function<double()> now);

  /// What workers have written since the last call, by their names.
  std::map<std::string, WorkerNews> read();
  /// The next call of read() returns all that they have written.
  void read_again();

  /// Those that have introduced themselves and have not said bye.
  std::set<std::string> present() const;
  /// Those of them that have been heard within the last minute: they may be given runs.
  std::vector<const WorkerFacts*> alive() const;

  /// Null while it has not introduced itself.
  const WorkerFacts* facts_of(const std::string& name) const;
  /// "" while it has not introduced itself.
  std::string host_of(const std::string& name) const;
  /// When its file was last seen to grow; nullopt if there is none.
  std::optional<double> last_sign_of(const std::string& name) const;
  /// True without a sign of life for a minute.
  bool is_silent(const std::string& name) const;
  /// True if it has said bye, or without a sign of life for ten minutes, which begin at `since` if it has no file.
  bool is_gone(const std::string& name, double since) const;

  /// Removes the files of those that have said bye, or were silent for a day, and are not `awaited`.
  void forget_all_but(const std::set<std::string>& awaited);

 private:
  struct Worker {
    WorkerTail tail;
    std::optional<WorkerFacts> facts = {};
    double grew_at = 0;
    bool has_said_bye = false;
  };

  std::filesystem::path file_of(const std::string& name) const { return folder_ / (name + ".jsonl"); }
  const Worker* find(const std::string& name) const;

  std::filesystem::path folder_;
  std::function<double()> now_;
  std::map<std::string, Worker> workers_;
};

}  // namespace tearless::harness
