// The jobs of active sweeps that may be started, in the order in which they are tried. Pure: times come from the
// caller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "harness/runs/launcher.h"

namespace tearless::harness {

/// The order of jobs: higher priority of the sweep, then earlier submission, lower rank, more work, place in the grid.
struct JobOrder {
  int64_t priority = 0;    // of the sweep
  int64_t submission = 0;  // SubmissionNumbers::queued of the sweep
  int64_t rank = 0;        // within the sweep
  int64_t work = 0;        // updates; the longest job of a rank goes first, so that the last one to end is a short one
  int64_t place = 0;       // in the grid's order

  bool operator<(const JobOrder& other) const {
    return std::tuple(-priority, submission, rank, -work, place) <
           std::tuple(-other.priority, other.submission, other.rank, -other.work, other.place);
  }
};

class JobQueue {
 public:
  /// A job that was skipped for this many seconds, because it does not fit while smaller ones do, blocks the others of
  /// its executor until it fits.
  static constexpr double kPatience = 600;

  /// Adds a job that may be started from the time `not_before` on; 0: at any time. REQUIRES: !contains(id).
  void push(const std::string& id, const Needs& needs, const JobOrder& order, double not_before = 0);

  /// Removes a job. False if it is not waiting.
  bool erase(const std::string& id);

  bool contains(const std::string& id) const { return orders_.contains(id); }
  size_t size() const { return jobs_.size(); }

  /// Calls `visit` with each id, in the order of JobOrder.
  void each(const std::function<void(const std::string& id)>& visit) const {
    for (const auto& [place, waiting] : jobs_) visit(place.second);
  }

  /// How many there are, by needs.
  std::map<Needs, int64_t> waiting() const;

  using RefusalOf = std::function<std::optional<Launcher::Refusal>(const Needs&)>;
  /// Removes and returns the first job, in the order of JobOrder, that may be started at the time `now` and whose needs
  /// are not refused. `refusal_of` is called at most once per distinct Needs. Nullopt if no job may be started.
  std::optional<std::string> take(double now, const RefusalOf& refusal_of);

 private:
  using Place = std::pair<JobOrder, std::string>;  // order, id
  struct Waiting {
    Needs needs;
    double not_before = 0;
  };
  // The jobs with the same needs.
  struct Kind {
    size_t jobs = 0;
    std::optional<double> skipped_since;  // another job was started since then although the first of these was due
  };

  std::map<Place, Waiting> jobs_;
  std::unordered_map<std::string, JobOrder> orders_;  // by id
  std::map<Needs, Kind> kinds_;
};

}  // namespace tearless::harness
