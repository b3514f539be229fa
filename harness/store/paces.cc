#include "harness/store/paces.h"

#include <algorithm>
#include <memory>

namespace tearless::harness {

void Paces::Pace::add(double pace) {
  ++runs;
  sum += pace;
  squares += pace * pace;
}

double Paces::Pace::variance() const {
  if (runs < 2) return 0;
  const auto count = static_cast<double>(runs);
  return std::max(0.0, (squares - sum * sum / count) / (count - 1));
}

Paces::Calibration::Calibration(const Timing& run) {
  if (run.training_seconds <= 0 || run.updates_made <= 0) {  // a program that does not measure it
    update = run.seconds / static_cast<double>(std::max<int64_t>(1, run.updates));
    return;
  }
  update = run.training_seconds / static_cast<double>(run.updates_made);
  if (run.evaluations > 0) evaluation = run.evaluation_seconds / static_cast<double>(run.evaluations);
  once = std::max(0.0, run.seconds - run.training_seconds - run.evaluation_seconds);
}

Paces::Paces(const std::vector<Timing>& ended, const std::vector<Timing>& calibrations) {
  // The supervisor, which counts where the program does not, counts whole seconds.
  const auto is_timed = [](const Timing& run) { return run.seconds > 0; };
  for (const Timing& run : ended) {
    if (!is_timed(run)) continue;
    paces_[{run.resource_class, true}].add(run.seconds);
    const int64_t updates = run.updates > 0 ? run.updates : run.updates_made;  // unknown when it was planned
    if (updates > 0) paces_[{run.resource_class, false}].add(run.seconds / static_cast<double>(updates));
  }
  for (const Timing& run : calibrations) {
    if (is_timed(run)) calibrations_.insert_or_assign(run.resource_class, Calibration(run));
  }
}

const Paces::Pace* Paces::measured(const Run& run) const {
  if (run.needs.resource_class.empty()) return nullptr;
  const auto pace = paces_.find({run.needs.resource_class, run.updates == 0});
  return pace == paces_.end() ? nullptr : &pace->second;
}

std::optional<double> Paces::calibrated(const Run& run) const {
  if (run.needs.resource_class.empty() || run.updates == 0) return std::nullopt;
  const auto found = calibrations_.find(run.needs.resource_class);
  if (found == calibrations_.end()) return std::nullopt;
  const auto& [once, update, evaluation] = found->second;
  return once + update * static_cast<double>(run.updates) + evaluation * static_cast<double>(run.evaluations);
}

std::optional<double> Paces::seconds_of(const Run& run) const {
  if (const Pace* pace = measured(run)) return pace->mean() * work_of(run);
  return calibrated(run);
}

double work_of(const Run& run) { return static_cast<double>(std::max<int64_t>(1, run.updates)); }

std::vector<Timing> timings_in(const Workspace& workspace) {
  const std::unique_ptr<const Store> store = Store::open_reader(workspace);
  return store ? store->timings() : std::vector<Timing>();
}

}  // namespace tearless::harness
