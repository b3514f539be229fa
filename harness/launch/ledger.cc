#include "harness/launch/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/memory_size.h"
#include "base/words.h"

namespace tearless::harness {
namespace {

// Driver and display use some hundred MiB. More, on a device where nobody is listed, belongs to a process that the
// driver hides from us (another container) or that is still ending.
constexpr int64_t kMaxHiddenBytes = int64_t{2} << 30;

constexpr size_t kMaxPidsNamed = 3;

// Who uses a device beside us, or "".
std::string foreign_use(std::vector<int64_t> pids, int64_t others_bytes) {
  if (pids.empty()) {
    if (others_bytes <= kMaxHiddenBytes) return "";
    return fmt::format("has {} in use by processes that are not listed", memory_text(others_bytes));
  }
  const size_t more = pids.size() - std::min(pids.size(), kMaxPidsNamed);
  pids.resize(pids.size() - more);
  return fmt::format("is used by {} {}{}", pids.size() == 1 ? "process" : "processes", fmt::join(pids, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

// A run on a GPU that is to be alone takes a whole GPU, and others may use the CPU and the other GPUs.
bool takes_machine(const Needs& needs) { return needs.alone && needs.device != "cuda"; }

std::string runs_text(int64_t runs) { return runs == 1 ? "its run" : fmt::format("its {} runs", runs); }

}  // namespace

Ledger::Ledger(Capacity capacity) : capacity_(std::move(capacity)) {
  if (capacity_.cores.empty()) throw std::logic_error("a ledger of no cores");
  for (const Device& device : capacity_.devices) devices_.push_back({.device = device});
}

std::optional<Reservation> Ledger::reserve(const Needs& needs) {
  Slot found = find_slot(needs);
  if (!found.why.empty()) return std::nullopt;
  return hold(std::move(found.reservation));
}

// Adopted runs may share cores. A shared core counts once for each of their reservations.
size_t Ledger::unreserved_cores() const {
  size_t reserved = 0;
  for (const auto& [id, held] : held_) reserved += held.cores.size();
  return std::min(free_cores().size(), capacity_.cores.size() - std::min(capacity_.cores.size(), reserved));
}

int64_t Ledger::runs_on_cpu() const {
  return std::count_if(held_.begin(), held_.end(), [](const auto& held) { return held.second.device.empty(); });
}

std::string Ledger::why_not(const Needs& needs) const { return find_slot(needs).why; }

Reservation Ledger::reserve_anyway(const Needs& needs, const std::string& uuid, const std::vector<int>& cores) {
  Reservation slot{.cores = {}, .device = uuid, .memory_bytes = uuid.empty() ? memory_of(needs) : 0};
  slot.whole_machine = takes_machine(needs);
  if (uuid.empty() && capacity_.jobs <= 0) slot.cores = cores.empty() ? free_cores() : cores;
  if (uuid.empty() && capacity_.jobs <= 0 && cores.empty()) {
    // Where too few are free it counts on cores of others too, so that they stay taken when those end.
    for (const int core : capacity_.cores) {
      if (std::find(slot.cores.begin(), slot.cores.end(), core) == slot.cores.end()) slot.cores.push_back(core);
    }
    slot.cores.resize(cores_for(needs));
  }
  for (const DeviceState& state : devices_) {
    if (state.device.uuid != uuid) continue;
    slot.whole_device = takes_whole(state, needs);
    slot.memory_bytes = slot.whole_device ? std::max<int64_t>(unreserved(state), 0) : *needs.memory_bytes;
  }
  return hold(std::move(slot));
}

void Ledger::release(const Reservation& reservation) {
  if (held_.erase(reservation.id) == 0) throw std::logic_error("a reservation was released twice");
}

bool Ledger::is_shared(const Reservation& reservation) const {
  if (!held_.contains(reservation.id)) throw std::logic_error("a released reservation was asked about");
  return std::any_of(held_.begin(), held_.end(), [&](const auto& held) {
    return held.first != reservation.id && held.second.device == reservation.device;
  });
}

std::vector<DeviceFacts> Ledger::shares() const {
  std::vector<DeviceFacts> shares;
  for (const DeviceState& state : devices_) {
    const OnDevice on = on_device(state.device.uuid);
    shares.push_back({.index = state.device.index,
                      .uuid = state.device.uuid,
                      .name = state.device.name,
                      .memory_bytes = state.device.memory_bytes,
                      .reserved_bytes = on.reserved,
                      .runs = on.runs,
                      .closed = why_closed(state)});
  }
  return shares;
}

void Ledger::note_use(const std::string& uuid, const DeviceUse& use, const std::set<int64_t>& own_pids) {
  const auto state = std::find_if(devices_.begin(), devices_.end(),
                                  [&](const DeviceState& device) { return device.device.uuid == uuid; });
  if (state == devices_.end()) return;
  state->error = use.error;
  if (!use.error.empty()) return;
  state->closed = use.closed;
  state->one_process = use.one_process;

  const bool reserved = on_device(uuid).runs > 0;
  bool own_is_listed = false;
  bool own_is_measured = true;
  int64_t own_bytes = 0;
  std::vector<int64_t> foreign;
  for (const DeviceProcess& process : use.processes) {
    if (!reserved || !own_pids.contains(process.pid)) {
      foreign.push_back(process.pid);
      continue;
    }
    own_is_listed = true;
    own_is_measured = own_is_measured && process.bytes.has_value();
    own_bytes += process.bytes.value_or(0);
  }
  if (reserved && !own_is_listed) return;
  if (own_is_measured) {
    state->own_bytes = own_bytes;
    state->others_bytes = std::max<int64_t>(use.used_bytes - own_bytes, 0);
  }
  state->foreign = foreign_use(std::move(foreign), state->others_bytes);
}

bool Ledger::can_ever(const Needs& needs) const {
  if (needs.device != "cuda") return needs.kind.empty() || needs.kind == capacity_.processor;
  return std::ranges::any_of(devices_, [&](const DeviceState& state) { return is_of_kind(state, needs); });
}

bool Ledger::is_of_kind(const DeviceState& state, const Needs& needs) {
  return needs.kind.empty() || needs.kind == state.device.name;
}

Ledger::Slot Ledger::find_slot(const Needs& needs) const {
  if (takes_machine(needs) && !held_.empty()) {
    return {.why = fmt::format("it must run alone, and {} on this machine",
                               held_.size() == 1 ? "1 run is" : fmt::format("{} runs are", held_.size()))};
  }
  int64_t reserved = 0;
  for (const auto& [id, held] : held_) {
    if (held.whole_machine) return {.why = "a run that must run alone is on this machine"};
    if (held.device.empty()) reserved += held.memory_bytes;
  }
  const int64_t memory = memory_of(needs);
  if (memory > 0 && reserved + memory > capacity_.memory_bytes) {
    return {.why =
                fmt::format("it needs {} of memory, but this machine has {} of {} unreserved", memory_text_up(memory),
                            memory_text_down(std::max<int64_t>(capacity_.memory_bytes - reserved, 0)),
                            memory_text(capacity_.memory_bytes))};
  }
  return needs.device == "cuda" ? slot_on_device(needs) : slot_on_cpu(needs);
}

Ledger::Slot Ledger::slot_on_cpu(const Needs& needs) const {
  if (!can_ever(needs)) {
    return {.why = fmt::format("its sweep is for {} alone (same_device), and this machine has {}", needs.kind,
                               capacity_.processor)};
  }
  Reservation slot{.cores = {}, .device = "", .memory_bytes = memory_of(needs)};
  slot.whole_machine = takes_machine(needs);
  if (capacity_.jobs > 0) {
    const int64_t runs = runs_on_cpu();
    if (runs >= capacity_.jobs) return {.why = fmt::format("the CPU has {}", runs_text(runs))};
    return {.reservation = slot};
  }
  const size_t wanted = cores_for(needs);
  if (const size_t unreserved = unreserved_cores(); unreserved < wanted) {
    return {.why = fmt::format("it needs {}, but {} of {} are unreserved",
                               counted(static_cast<int64_t>(wanted), "core"), unreserved, capacity_.cores.size())};
  }
  slot.cores = free_cores();
  slot.cores.resize(wanted);
  return {.reservation = std::move(slot)};
}

Ledger::Slot Ledger::slot_on_device(const Needs& needs) const {
  if (devices_.empty()) return {.why = "it needs a CUDA device, but the NVIDIA driver shows no GPU here"};
  const DeviceState* best = nullptr;
  std::vector<std::string> reasons;
  const auto preference = [&](const DeviceState& state) {
    return std::tuple(-on_device(state.device.uuid).runs, unreserved(state));
  };
  for (const DeviceState& state : devices_) {
    if (std::string why = why_not_on(state, needs); !why.empty()) {
      reasons.push_back(fmt::format("GPU {} {}", state.device.index, why));
    } else if (!best || preference(state) > preference(*best)) {
      best = &state;
    }
  }
  if (!best) {
    const bool whole = needs.alone || !needs.memory_bytes;
    const std::string size = whole ? "a whole GPU" : memory_text_up(*needs.memory_bytes);
    return {.why = fmt::format("it needs {}, but {}", size, fmt::join(reasons, ", "))};
  }
  const bool whole = takes_whole(*best, needs);
  return {.reservation = {.cores = {},
                          .device = best->device.uuid,
                          .memory_bytes = whole ? unreserved(*best) : *needs.memory_bytes,
                          .whole_device = whole}};
}

std::string Ledger::why_closed(const DeviceState& state) {
  if (!state.error.empty()) return fmt::format("does not answer ({})", state.error);
  return state.closed.empty() ? state.foreign : state.closed;
}

std::string Ledger::why_not_on(const DeviceState& state, const Needs& needs) const {
  if (!is_of_kind(state, needs)) return fmt::format("is no {}, for which alone its sweep is (same_device)", needs.kind);
  if (std::string closed = why_closed(state); !closed.empty()) return closed;
  const OnDevice on = on_device(state.device.uuid);
  if (on.has_whole_device) return "is taken whole by a run";
  if (on.runs >= capacity_.runs_per_gpu) return "has " + runs_text(on.runs);
  if (on.runs > 0 && state.one_process) {
    return "has its run, and no room for another in its exclusive compute mode (`nvidia-smi -c 0` ends it)";
  }
  const int64_t free = unreserved(state);
  if (takes_whole(state, needs)) return on.runs == 0 && free > 0 ? "" : "is not empty";
  if (*needs.memory_bytes > free) return fmt::format("has {} unreserved", memory_text_down(std::max<int64_t>(free, 0)));
  return "";
}

Ledger::OnDevice Ledger::on_device(const std::string& uuid) const {
  OnDevice on;
  for (const auto& [id, held] : held_) {
    if (held.device != uuid) continue;
    ++on.runs;
    on.reserved += held.memory_bytes;
    on.has_whole_device = on.has_whole_device || held.whole_device;
  }
  return on;
}

// Of the machine.
int64_t Ledger::memory_of(const Needs& needs) const {
  return needs.device == "cuda" ? 0 : std::min(needs.memory_bytes.value_or(0), capacity_.memory_bytes);
}

int64_t Ledger::unreserved(const DeviceState& state) const {
  const OnDevice on = on_device(state.device.uuid);
  const int64_t own = on.runs == 0 ? 0 : state.own_bytes;
  return state.device.memory_bytes - state.others_bytes - std::max(on.reserved, own);
}

bool Ledger::takes_whole(const DeviceState& state, const Needs& needs) const {
  if (needs.alone || !needs.memory_bytes) return true;
  int64_t largest = 0;
  bool fits_none = true;
  for (const DeviceState& other : devices_) {
    if (!is_of_kind(other, needs)) continue;
    largest = std::max(largest, other.device.memory_bytes);
    fits_none = fits_none && *needs.memory_bytes > other.device.memory_bytes - other.others_bytes;
  }
  return fits_none && state.device.memory_bytes == largest;
}

size_t Ledger::cores_for(const Needs& needs) const {
  return std::min(static_cast<size_t>(std::max(needs.threads, 1)), capacity_.cores.size());
}

std::vector<int> Ledger::free_cores() const {
  std::set<int> taken;
  for (const auto& [id, held] : held_) taken.insert(held.cores.begin(), held.cores.end());
  std::vector<int> free;
  for (const int core : capacity_.cores) {
    if (!taken.contains(core)) free.push_back(core);
  }
  return free;
}

Reservation Ledger::hold(Reservation reservation) {
  reservation.id = next_id_++;
  return held_[reservation.id] = std::move(reservation);
}

}  // namespace tearless::harness
