// The ledger of what the runs of this machine have reserved: cores, memory, GPUs. The needs of a run are reserved
// before it is started, so that two starts do not count on the same memory. It reads nothing itself: the caller says
// what the machine has (machine.h) and what the GPUs do (device.h).
//
// Invariants of reserve(), for each resource (tests/harness/launch/ledger_test.cc checks them in random sequences):
//   - reservations ≤ capacity;
//   - no core belongs to two reservations;
//   - a GPU that processes of others compute on gets no new reservation.
// reserve_anyway() may break them: its attempt runs already.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/launch/device.h"
#include "harness/runs/devices.h"
#include "harness/runs/needs.h"

namespace tearless::harness {

/// What runs may use of this machine.
struct Capacity {
  std::vector<int> cores = {};       // numbers of CPU cores
  int64_t memory_bytes = 0;          // of the machine; 0: not known, so that it limits nothing
  int jobs = 0;                      // > 0: at most so many runs on the CPU, whatever their threads, and none is pinned
  int runs_per_gpu = 1;              // at most so many runs on each GPU
  std::vector<Device> devices = {};  // GPUs
  std::string processor = {};        // as Needs::kind; "": not known, so that it fits none in particular
};

/// What a run has reserved. Return it with Ledger::release().
struct Reservation {
  int64_t id = 0;
  std::vector<int> cores;    // to pin the run to; empty: it is not pinned
  std::string device;        // UUID; "" on the CPU
  int64_t memory_bytes = 0;  // of the device; on the CPU, of the machine
  bool whole_device = false;
  bool whole_machine = false;
};

class Ledger {
 public:
  /// REQUIRES: `capacity` has a core.
  explicit Ledger(Capacity capacity);

  /// False for a run on "cuda" if this machine has no GPU, and for one that needs another kind than it has. Any other
  /// run fits once nothing else runs.
  bool can_ever(const Needs& needs) const;

  /// Reserves what a run needs; nullopt if it is not there now. A run on the CPU that needs more memory than the
  /// machine has takes all of it. A run on "cuda" whose memory is not known, or more than any GPU has, takes a whole
  /// GPU, in the latter case of the largest ones. A GPU without a run is preferred, then the one with the fewest runs,
  /// then the one with the most unreserved memory.
  std::optional<Reservation> reserve(const Needs& needs);

  /// Why reserve(needs) would return nullopt: "it needs 9.1 GiB, but GPU 2 has 7.8 GiB unreserved"; "" if it would
  /// succeed.
  std::string why_not(const Needs& needs) const;

  /// Reserves for an attempt that is running already, on the device `uuid` ("" on the CPU), pinned to `cores` (empty if
  /// it is not known). Exceeds the capacity where it must. A device that the machine does not have (any more) is
  /// kept in the reservation but not counted.
  Reservation reserve_anyway(const Needs& needs, const std::string& uuid, const std::vector<int>& cores = {});

  /// REQUIRES: the reservation was not released before (std::logic_error).
  void release(const Reservation& reservation);

  /// True if other runs have the same GPU, or for a run on the CPU, if there are others on the CPU. REQUIRES: as
  /// release().
  bool is_shared(const Reservation& reservation) const;

  /// What is reserved of each device.
  std::vector<DeviceFacts> shares() const;

  /// What a device does now. One that does not answer, or is closed, takes no new run, and neither does one with
  /// processes of others: all but `own_pids`, which are the processes of all reservations with their children, and any
  /// process on a device without a reservation. Memory that others use is not reserved, nor what our runs use beyond
  /// their reservations.
  ///
  /// In a container the pids of NVML are not those that we know. While none of ours is listed on a device with
  /// reservations, nothing can be said of the others there, and what was found before is kept.
  void note_use(const std::string& uuid, const DeviceUse& use, const std::set<int64_t>& own_pids);

 private:
  struct DeviceState {
    Device device;
    std::string error = {};    // why it does not answer; "" if it does
    std::string closed = {};   // why no process can begin on it; "" if one can
    bool one_process = false;  // as DeviceUse
    std::string foreign = {};  // who else uses it, so that it takes no run; "" if nobody does
    int64_t others_bytes = 0;  // used by processes of others and by the driver
    int64_t own_bytes = 0;     // used by our runs
  };
  struct OnDevice {
    int runs = 0;
    int64_t reserved = 0;           // bytes
    bool has_whole_device = false;  // one run has taken it whole
  };
  struct Slot {
    Reservation reservation = {};  // without an id
    std::string why = {};          // the needs do not fit; "" if they do
  };

  Slot find_slot(const Needs& needs) const;
  Slot slot_on_cpu(const Needs& needs) const;
  Slot slot_on_device(const Needs& needs) const;
  static bool is_of_kind(const DeviceState& state, const Needs& needs);
  static std::string why_closed(const DeviceState& state);
  std::string why_not_on(const DeviceState& state, const Needs& needs) const;
  OnDevice on_device(const std::string& uuid) const;
  int64_t runs_on_cpu() const;
  size_t unreserved_cores() const;
  int64_t unreserved(const DeviceState& state) const;
  bool takes_whole(const DeviceState& state, const Needs& needs) const;
  size_t cores_for(const Needs& needs) const;
  int64_t memory_of(const Needs& needs) const;
  std::vector<int> free_cores() const;
  Reservation hold(Reservation reservation);

  Capacity capacity_;
  std::vector<DeviceState> devices_;
  std::map<int64_t, Reservation> held_;  // by id
  int64_t next_id_ = 1;
};

}  // namespace tearless::harness
