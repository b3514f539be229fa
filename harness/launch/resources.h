// What this machine's runs use: who has reserved what (ledger.h), and how much memory runs of a resource class need
// (memory_needs.h), which is learnt from the runs themselves. Reads the GPUs through a DeviceMonitor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/launch/device.h"
#include "harness/launch/ledger.h"
#include "harness/launch/memory_needs.h"
#include "harness/runs/needs.h"

namespace tearless::harness {

class Resources {
 public:
  /// `pin`: bind each run on the CPU to cores of its own. `monitor` may be null: GPU usage is then unknown. `peaks`:
  /// what an earlier process has learnt, peak_of() by resource class.
  Resources(Capacity capacity, bool pin, std::unique_ptr<DeviceMonitor> monitor,
            const std::map<std::string, int64_t>& peaks = {});

  /// As Ledger::can_ever().
  bool can_ever(const Needs& needs) const { return ledger_.can_ever(needs); }
  /// Why reserve() is not possible now, one phrase; "" if it is.
  std::string why_not(const Needs& needs) const { return ledger_.why_not(as_learnt(needs)); }

  /// Reserves what a run needs. REQUIRES: why_not(needs) is "" (std::logic_error), and `run` has no reservation.
  const Reservation& reserve(const std::string& run, const Needs& needs);
  /// As Ledger::reserve_anyway(), for an attempt that runs already.
  void reserve_anyway(const std::string& run, const Needs& needs, const std::string& device,
                      const std::vector<int>& cores);

  /// How an attempt ended, for the needs of its resource class.
  enum class End {
    kByItself,  // with a result: what it used at most is the peak of its resource class
    kOutOfMemory,
    kOtherwise,
  };
  /// Takes the reservation back. REQUIRES, as the functions below: the run has a reservation.
  void release(const std::string& run, End end);

  /// Notes what a run has used of the machine's memory, or of its GPU's.
  void note_use(const std::string& run, int64_t bytes);

  /// Looks at the GPUs. `processes`: the pids of each run that has a reservation.
  void observe(const std::map<std::string, std::set<int64_t>>& processes);

  /// Why a run is where it is: "on GPU 1, 8.8 GiB reserved (8.0 GiB measured, with a margin of 10 %)".
  std::string why_here(const std::string& run) const;
  const Needs& needs_of(const std::string& run) const { return runs_.at(run).needs; }

  std::vector<DeviceFacts> shares() const { return ledger_.shares(); }
  std::optional<int64_t> peak_of(const std::string& resource_class) const { return memory_.peak_of(resource_class); }

 private:
  struct Run {
    Needs needs;
    Reservation reservation;
    std::string why;        // so much memory, by what was known then
    int64_t most_used = 0;  // bytes; 0: not known
  };

  Needs as_learnt(Needs needs) const;
  MemoryNeeds::Answer memory_of(const Needs& needs) const;
  int64_t smallest_device() const;

  Capacity capacity_;
  bool pin_;
  std::unique_ptr<DeviceMonitor> monitor_;
  Ledger ledger_;
  MemoryNeeds memory_;  // of GPUs and of the machine: a resource class is of one kind of device
  std::map<std::string, Run> runs_;
};

}  // namespace tearless::harness
