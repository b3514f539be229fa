#include "harness/devices/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/memory_size.h"
#include "base/words.h"

namespace tearless::harness {
using nlohmann::json;

Resources::Resources(Options options, std::unique_ptr<DeviceMonitor> monitor)
    : options_(std::move(options)), monitor_(std::move(monitor)), ledger_(options_.capacity) {}

std::optional<Reservation> Resources::reserve(const Needs& needs) {
  std::optional<Reservation> reservation = ledger_.reserve(as_learnt(needs));
  if (reservation && !options_.pin) reservation->cores.clear();
  return reservation;
}

// With the memory and the number of runs per GPU that were learnt.
Needs Resources::as_learnt(Needs needs) const {
  const std::optional<int64_t> memory = memory_of(needs).bytes;
  const bool on_gpu = needs.device == "cuda";
  if (on_gpu && !needs.alone) needs.runs_per_device = sharing_of(needs).runs;
  needs.memory_bytes = memory;
  if (on_gpu && !memory && options_.runs_per_gpu > 1) needs.memory_bytes = smallest_device() / options_.runs_per_gpu;
  return needs;
}

MemoryNeeds::Answer Resources::memory_of(const Needs& needs) const {
  return memory_.of(needs.resource_class, {.declared = needs.declared ? needs.memory_bytes : std::nullopt,
                                           .estimate = needs.declared ? std::nullopt : needs.memory_bytes});
}

Sharing::Answer Resources::sharing_of(const Needs& needs) const {
  if (options_.runs_per_gpu > 0) {
    return {.runs = options_.runs_per_gpu,
            .searching = false,
            .why = fmt::format("{} per GPU as asked", options_.runs_per_gpu)};
  }
  if (needs.resource_class.empty())
    return {.runs = 1, .searching = false, .why = "1 per GPU: what it needs is not known"};
  const std::optional<int64_t> bytes = memory_of(needs).bytes;
  if (!bytes) return {.runs = 1, .searching = false, .why = "1 per GPU: how much memory it needs is not known"};
  return sharing_.runs_per_device(
      needs.resource_class,
      static_cast<int>(std::min<int64_t>(smallest_device() / std::max<int64_t>(*bytes, 1), kMaxRunsPerGpu)));
}

int64_t Resources::smallest_device() const {
  int64_t smallest = 0;
  for (const Device& device : devices()) {
    smallest = smallest == 0 ? device.memory_bytes : std::min(smallest, device.memory_bytes);
  }
  return smallest;
}

void Resources::release(const Needs& needs, const Reservation& reservation, End end) {
  const bool shared = ledger_.is_shared(reservation);
  ledger_.release(reservation);
  const auto used = most_used_.extract(reservation.id);
  if (needs.resource_class.empty()) return;
  if (end == End::kByItself && used) memory_.learn_peak(needs.resource_class, used.mapped());
  if (end == End::kOutOfMemory) memory_.ran_out(needs.resource_class, reservation.memory_bytes, shared);
}

void Resources::observe(const std::vector<RunningRun>& running, double now) {
  for (const RunningRun& run : running) {
    // The number for the resource class may have changed since the run was started.
    if (run.needs->device == "cuda" && !run.needs->alone) {
      ledger_.set_runs_per_device(*run.reservation, sharing_of(*run.needs).runs);
    }
  }
  if (monitor_) check_devices(running);
  measure_throughput(running, now);
}

void Resources::note_use(const Needs& needs, const Reservation& reservation, int64_t bytes) {
  int64_t& most = most_used_[reservation.id];
  most = std::max(most, bytes);
  if (!needs.resource_class.empty()) memory_.learn_use(needs.resource_class, most);
}

void Resources::check_devices(const std::vector<RunningRun>& running) {
  std::set<int64_t> own;
  for (const RunningRun& run : running) own.insert(run.pids.begin(), run.pids.end());
  for (const Device& device : monitor_->devices()) {
    const DeviceUse use = monitor_->use_of(device.uuid);
    ledger_.note_use(device.uuid, use, own);
    for (const RunningRun& run : running) {
      if (run.reservation->device != device.uuid) continue;
      int64_t bytes = 0;
      for (const DeviceProcess& process : use.processes) {
        if (run.pids.contains(process.pid)) bytes += process.bytes.value_or(0);
      }
      if (bytes > 0) note_use(*run.needs, *run.reservation, bytes);
    }
  }
}

void Resources::measure_throughput(const std::vector<RunningRun>& running, double now) {
  std::map<std::string, std::vector<Throughput::Run>> on_device;
  for (const Device& device : devices()) on_device[device.uuid];
  for (const RunningRun& run : running) {
    const auto runs = on_device.find(run.reservation->device);
    if (runs != on_device.end())
      runs->second.push_back({.id = run.id, .resource_class = run.needs->resource_class, .step = run.step});
  }
  for (const auto& [uuid, runs] : on_device) {
    if (const auto observation = throughput_[uuid].note(runs, now)) sharing_.observe(*observation);
  }
}

std::string Resources::why_here(const Needs& needs, const Reservation& reservation) const {
  if (needs.device != "cuda") {
    std::string text = fmt::format("on the CPU with {}", counted(needs.threads, "thread"));
    if (reservation.memory_bytes > 0) {
      text += fmt::format(", {} reserved ({})", memory_text(reservation.memory_bytes), memory_of(needs).why);
    }
    return text;
  }
  const auto device = std::find_if(devices().begin(), devices().end(),
                                   [&](const Device& each) { return each.uuid == reservation.device; });
  std::string text =
      device == devices().end() ? fmt::format("on {}", reservation.device) : fmt::format("on GPU {}", device->index);
  if (needs.alone) return text + ", by itself because it ran out of memory beside others";
  return text + fmt::format(", {} reserved ({}); {}", memory_text(reservation.memory_bytes), memory_of(needs).why,
                            sharing_of(needs).why);
}

json Resources::learnt(const std::string& resource_class) const {
  const std::optional<int64_t> peak = memory_.peak_of(resource_class);
  json observations = sharing_.observations_of(resource_class);
  if (!peak && observations.empty()) return nullptr;
  return {{"peak_bytes", peak ? json(*peak) : json()}, {"observations", std::move(observations)}};
}

void Resources::restore(const std::string& resource_class, const json& learnt) {
  try {
    const json& peak = learnt.at("peak_bytes");
    sharing_.restore(resource_class, learnt.at("observations"));
    if (peak.is_number()) memory_.learn_peak(resource_class, peak);
  } catch (const json::exception&) {
    // Of another tearless, or changed by hand: it is learnt again.
  }
}

}  // namespace tearless::harness
