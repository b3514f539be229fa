#include "harness/launch/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/memory_size.h"
#include "base/words.h"

namespace tearless::harness {

Resources::Resources(Capacity capacity, bool pin, std::unique_ptr<DeviceMonitor> monitor,
                     const std::map<std::string, int64_t>& peaks)
    : capacity_(std::move(capacity)), pin_(pin), monitor_(std::move(monitor)), ledger_(capacity_) {
  for (const auto& [resource_class, bytes] : peaks) memory_.learn_peak(resource_class, bytes);
  if (!monitor_) return;
  for (const Device& device : monitor_->devices()) {  // which are closed; whose processes they have is not known yet
    DeviceUse use = monitor_->use_of(device.uuid);
    use.used_bytes = 0;
    use.processes.clear();
    ledger_.note_use(device.uuid, use, {});
  }
}

const Reservation& Resources::reserve(const std::string& run, const Needs& needs) {
  std::optional<Reservation> reservation = ledger_.reserve(as_learnt(needs));
  if (!reservation) throw std::logic_error("a run was started for which there is no room");
  if (!pin_) reservation->cores.clear();
  return (runs_[run] = {.needs = needs, .reservation = *std::move(reservation), .why = memory_of(needs).why})
      .reservation;
}

void Resources::reserve_anyway(const std::string& run, const Needs& needs, const std::string& device,
                               const std::vector<int>& cores) {
  runs_[run] = {.needs = needs,
                .reservation = ledger_.reserve_anyway(as_learnt(needs), device, cores),
                .why = memory_of(needs).why};
}

// With the memory that was learnt.
Needs Resources::as_learnt(Needs needs) const {
  needs.memory_bytes = memory_of(needs).bytes;
  if (needs.device == "cuda" && !needs.memory_bytes && capacity_.runs_per_gpu > 1) {
    needs.memory_bytes = smallest_device() / capacity_.runs_per_gpu;
  }
  return needs;
}

MemoryNeeds::Answer Resources::memory_of(const Needs& needs) const {
  return memory_.of(needs.resource_class, {.declared = needs.declared ? needs.memory_bytes : std::nullopt,
                                           .estimate = needs.declared ? std::nullopt : needs.memory_bytes});
}

int64_t Resources::smallest_device() const {
  int64_t smallest = 0;
  for (const Device& device : capacity_.devices) {
    smallest = smallest == 0 ? device.memory_bytes : std::min(smallest, device.memory_bytes);
  }
  return smallest;
}

void Resources::release(const std::string& id, End end) {
  const Run run = std::move(runs_.extract(id).mapped());
  const bool shared = ledger_.is_shared(run.reservation);
  ledger_.release(run.reservation);
  const std::string& resource_class = run.needs.resource_class;
  if (resource_class.empty()) return;
  if (end == End::kByItself && run.most_used > 0) memory_.learn_peak(resource_class, run.most_used);
  if (end == End::kOutOfMemory) memory_.ran_out(resource_class, run.reservation.memory_bytes, shared);
}

void Resources::note_use(const std::string& id, int64_t bytes) {
  Run& run = runs_.at(id);
  run.most_used = std::max(run.most_used, bytes);
  if (!run.needs.resource_class.empty()) memory_.learn_use(run.needs.resource_class, run.most_used);
}

void Resources::observe(const std::map<std::string, std::set<int64_t>>& processes) {
  if (!monitor_) return;
  std::set<int64_t> own;
  for (const auto& [id, pids] : processes) own.insert(pids.begin(), pids.end());
  for (const Device& device : monitor_->devices()) {
    const DeviceUse use = monitor_->use_of(device.uuid);
    ledger_.note_use(device.uuid, use, own);
    for (const auto& [id, pids] : processes) {
      if (runs_.at(id).reservation.device != device.uuid) continue;
      int64_t bytes = 0;
      for (const DeviceProcess& process : use.processes) {
        if (pids.contains(process.pid)) bytes += process.bytes.value_or(0);
      }
      if (bytes > 0) note_use(id, bytes);
    }
  }
}

std::string Resources::why_here(const std::string& id) const {
  const auto& [needs, reservation, why, most_used] = runs_.at(id);
  const std::string more =
      most_used > reservation.memory_bytes ? fmt::format("; it has used {}", memory_text(most_used)) : "";
  const std::string reserved = fmt::format(", {} reserved ({}{})", memory_text(reservation.memory_bytes), why, more);
  if (needs.device != "cuda") {
    return fmt::format("on the CPU with {}", counted(needs.threads, "thread")) +
           (reservation.memory_bytes > 0 ? reserved : "");
  }
  const auto device = std::ranges::find(capacity_.devices, reservation.device, &Device::uuid);
  const std::string place = device == capacity_.devices.end() ? fmt::format("on {}", reservation.device)
                                                              : fmt::format("on GPU {}", device->index);
  return place + (needs.alone ? ", by itself because it ran out of memory beside others" : reserved);
}

}  // namespace tearless::harness
