// What the launcher of workers asks of a cluster: that there are workers while runs wait, and why one of them is gone.
// The built-in executor `workers` has no such thing: people start its workers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runs/needs.h"
#include "harness/runs/states.h"

namespace tearless::harness {

/// A worker, as far as a cluster has to know it.
struct ClusterWorker {
  std::string name;  // no two processes have one
  std::string host;
  std::string job;  // what its `--job` says: "17_3@1a2b3c4d" (script.h), "" for one that a person has started
};

class Machines {
 public:
  virtual ~Machines() = default;

  /// Called every second or two: what waits, by needs, the workers of this executor that are alive, and the hosts on
  /// which new ones are of no use. Asks for more workers, or for fewer. MachineError if the disk is full: it may be
  /// called again.
  virtual void expect(const std::map<Needs, int64_t>& waiting, const std::vector<ClusterWorker>& alive,
                      const std::set<std::string>& not_on) = 0;

  struct Fate {
    FailureClass failure;       // kOutOfMemory: of the whole job; whose fault that is, one attempt alone tells
    std::string reason;         // one phrase: "its job 17_3 was preempted (PREEMPTED) on n2"
    bool is_time_over = false;  // it had all the time that it was to have
  };
  /// How the job of a worker ended that has been silent for a minute. Nullopt if that is not known, which never means
  /// that it has ended: ask again, each second or two.
  virtual std::optional<Fate> fate_of(const ClusterWorker& worker) = 0;

  /// Why runs with these needs can never be trained there, one phrase; "" if they can.
  virtual std::string never_fits(const Needs& needs) const = 0;

  /// Workers that train such runs have more memory than this, of a GPU for runs on "cuda", else of their machine.
  virtual int64_t memory_above(const Needs& /*needs*/) const { return 0; }

  /// As Launcher::notes().
  virtual std::vector<std::string> notes() const { return {}; }

  /// Why there are no more workers, one phrase: "2 jobs pending (Priority)".
  virtual std::string why_none() const = 0;
};

}  // namespace tearless::harness
