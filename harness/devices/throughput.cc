#include "harness/devices/throughput.h"

#include <algorithm>

namespace tearless::harness {

bool Throughput::is_of_the_same(const std::vector<Run>& runs) const {
  return runs.size() == spans_.size() && std::all_of(runs.begin(), runs.end(), [&](const Run& run) {
           const auto span = spans_.find(run.id);
           return span != spans_.end() && run.step >= span->second.step_seen;  // a new attempt begins at a checkpoint
         });
}

std::optional<SharingObservation> Throughput::note(const std::vector<Run>& runs, double now) {
  if (!is_of_the_same(runs)) {
    spans_.clear();
    since_ = now;
    for (const Run& run : runs)
      spans_[run.id] = {.resource_class = run.resource_class, .step_seen = run.step, .first_time = {}};
    return std::nullopt;
  }
  for (const Run& run : runs) {
    Span& span = spans_.at(run.id);
    if (run.step == span.step_seen) continue;
    span.step_seen = run.step;
    span.last_time = now;
    if (!span.first_time) {
      span.first_time = now;
      span.first_step = run.step;
    }
  }
  if (runs.empty() || now - since_ < kWindow) return std::nullopt;

  const std::string& resource_class = runs.front().resource_class;
  double rate = 0;
  for (const auto& [id, span] : spans_) {
    if (span.resource_class.empty() || span.resource_class != resource_class) return std::nullopt;
    if (!span.first_time || span.last_time <= *span.first_time) return std::nullopt;
    rate += static_cast<double>(span.step_seen - span.first_step) / (span.last_time - *span.first_time);
  }
  for (auto& [id, span] : spans_) {  // the next window begins with the last reports of this one
    span.first_time = span.last_time;
    span.first_step = span.step_seen;
  }
  const double seconds = now - since_;
  since_ = now;
  return SharingObservation{.resource_class = resource_class,
                            .runs = static_cast<int>(runs.size()),
                            .seconds = seconds,
                            .updates = rate * seconds};
}

}  // namespace tearless::harness
