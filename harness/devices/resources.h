// What the runs of this machine use: who has reserved what (ledger.h), how much memory runs of a resource class need
// (memory_needs.h), and how many of them share a GPU (sharing.h). The last two are learnt from the runs themselves.
// Reads the GPUs through a DeviceMonitor; times come from the caller.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/devices/device.h"
#include "harness/devices/ledger.h"
#include "harness/devices/memory_needs.h"
#include "harness/devices/needs.h"
#include "harness/devices/sharing.h"
#include "harness/devices/throughput.h"

namespace tearless::harness {

/// A run that is running.
struct RunningRun {
  std::string id;
  const Needs* needs = nullptr;
  const Reservation* reservation = nullptr;
  int64_t step = 0;        // updates that it has reported
  std::set<int64_t> pids;  // its processes; not needed for a run on the CPU
};

class Resources {
 public:
  struct Options {
    Capacity capacity;
    int runs_per_gpu = 0;  // at most so many; 0: as many as together make the most updates
    bool pin = false;      // bind each run on the CPU to cores of its own
  };

  /// A machine without a GPU.
  explicit Resources(Options options) : Resources(std::move(options), nullptr) {}
  /// `monitor` may be null: then nothing is known of what else uses the GPUs, and no use of memory is measured.
  Resources(Options options, std::unique_ptr<DeviceMonitor> monitor);

  /// False for a run on "cuda" if this machine has no GPU. Any other run fits once nothing else runs.
  bool can_ever(const Needs& needs) const { return ledger_.can_ever(needs); }

  bool cpu_is_full() const { return ledger_.cpu_is_full(); }

  /// Reserves what a run needs; nullopt if it is not there now.
  std::optional<Reservation> reserve(const Needs& needs);
  /// Why reserve(needs) would return nullopt, as Ledger::why_not().
  std::string why_not(const Needs& needs) const { return ledger_.why_not(as_learnt(needs)); }
  /// As Ledger::reserve_anyway(), for an attempt that runs already.
  Reservation reserve_anyway(const Needs& needs, const std::string& device, const std::vector<int>& cores = {}) {
    return ledger_.reserve_anyway(as_learnt(needs), device, cores);
  }

  /// How an attempt ended, for the needs of its resource class.
  enum class End {
    kByItself,  // with a result: what it used at most is the peak of its resource class
    kOutOfMemory,
    kOtherwise,
  };
  /// Notes what a run has used of the machine's memory, or of its GPU's.
  void note_use(const Needs& needs, const Reservation& reservation, int64_t bytes);

  /// Takes the reservation back. REQUIRES: it was not released before (std::logic_error).
  void release(const Needs& needs, const Reservation& reservation, End end);

  /// Looks at the GPUs and measures what the running ones do. Call every few seconds with all of them.
  void observe(const std::vector<RunningRun>& running, double now);

  /// Why a running run is where it is: "on GPU 1, 8.8 GiB reserved (8.0 GiB measured, with a margin of 10 %); 2 per
  /// GPU: 1 run makes 10.2k updates/s, 2 make 17.9k".
  std::string why_here(const Needs& needs, const Reservation& reservation) const;

  Ledger::Share share_of(const std::string& uuid) const { return ledger_.share_of(uuid); }
  const std::vector<Device>& devices() const { return options_.capacity.devices; }

  /// What was learnt of a resource class, to be kept for the next process. Null if nothing was.
  nlohmann::json learnt(const std::string& resource_class) const;
  /// The inverse. Ignores what learnt() has not written.
  void restore(const std::string& resource_class, const nlohmann::json& learnt);

 private:
  static constexpr int kMaxRunsPerGpu = 64;  // more than any driver's time slices serve well

  Needs as_learnt(Needs needs) const;
  MemoryNeeds::Answer memory_of(const Needs& needs) const;
  Sharing::Answer sharing_of(const Needs& needs) const;
  int64_t smallest_device() const;
  void check_devices(const std::vector<RunningRun>& running);
  void measure_throughput(const std::vector<RunningRun>& running, double now);

  Options options_;
  std::unique_ptr<DeviceMonitor> monitor_;
  Ledger ledger_;
  MemoryNeeds memory_;  // of GPUs and of the machine: a resource class is of one kind of device
  Sharing sharing_;
  std::map<std::string, Throughput> throughput_;  // GPU → of the runs on it
  std::map<int64_t, int64_t> most_used_;          // reservation → bytes that its run has used at most
};

}  // namespace tearless::harness
