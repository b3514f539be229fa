#include "harness/results/cost.h"

#include <algorithm>

#include "base/time.h"

namespace tearless::harness {

void TrainingCost::add(const Row& row) {
  for (const AttemptRecord& attempt : row.result.attempts) {
    ++attempts;
    const auto began = seconds_of_utc(attempt.started_at), ended = seconds_of_utc(attempt.ended_at);
    if (!began || !ended) {
      ++of_unknown_length;
      continue;
    }
    const double hours = static_cast<double>(*ended - *began) / 3600;
    if (attempt.device == "cpu") {
      core_hours += hours * row.run.needs.threads;
    } else {
      gpu_hours += hours;
    }
    from = from.empty() ? attempt.started_at : std::min(from, attempt.started_at);
    to = std::max(to, attempt.ended_at);
  }
}

}  // namespace tearless::harness
