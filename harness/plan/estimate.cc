#include "harness/plan/estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/words.h"
#include "harness/runs/progress.h"
#include "harness/store/paces.h"

namespace tearless::harness {
namespace {

constexpr int kMaxMeasured = 4;  // runs of a class whose folders are measured

struct Wanted {
  double updates = 0, squares = 0;  // sums of the runs' updates, and of the squares
};

}  // namespace

Estimate estimate_of(const std::vector<Run>& runs, const std::vector<Timing>& ended,
                     const std::vector<Timing>& calibrations) {
  const Paces paces(ended, calibrations);
  Estimate estimate;
  const auto add = [&](const Run& run, double seconds) {
    ++estimate.known;
    const bool on_gpu = run.needs.device == "cuda";
    (on_gpu ? estimate.gpu_seconds : estimate.cpu_seconds) += seconds * (on_gpu ? 1 : run.needs.threads);
  };
  std::map<const Paces::Pace*, Wanted> wanted;
  std::set<std::string> untimed_classes, tried_classes;
  for (const Timing& run : calibrations) tried_classes.insert(run.resource_class);
  for (const Run& run : runs) {
    const std::string& resource_class = run.needs.resource_class;
    const std::optional<double> seconds = paces.seconds_of(run);
    if (!seconds) {
      ++estimate.unknown;
      if (!resource_class.empty() && !tried_classes.contains(resource_class)) {
        ++estimate.untimed;
        untimed_classes.insert(resource_class);
      }
      continue;
    }
    add(run, *seconds);
    const Paces::Pace* pace = paces.measured(run);
    if (!pace) {
      ++estimate.calibrated;
      continue;
    }
    const double work = work_of(run);
    Wanted& of_class = wanted[pace];
    of_class.updates += work;
    of_class.squares += work * work;
  }
  estimate.untimed_classes = static_cast<int64_t>(untimed_classes.size());
  // The variance of the sum: each run differs from the mean of its class, and that mean is itself measured.
  double variance = 0, sum = 0;
  for (const auto& [pace, of_class] : wanted) {
    estimate.ended += pace->runs;
    sum += pace->mean() * of_class.updates;
    variance +=
        pace->variance() * (of_class.squares + of_class.updates * of_class.updates / static_cast<double>(pace->runs));
  }
  if (sum > 0 && estimate.calibrated == 0) estimate.error = 2 * std::sqrt(variance) / sum;
  return estimate;
}

std::optional<int64_t> disk_estimate(const std::vector<Run>& runs, const std::vector<Timing>& ended,
                                     const std::function<int64_t(const std::string& id)>& bytes_of) {
  struct Size {
    int runs = 0;
    int64_t most = 0;
  };
  std::map<std::string, Size> sizes;
  for (const Run& run : runs) sizes[run.needs.resource_class];
  for (const Timing& run : ended) {
    const auto size = sizes.find(run.resource_class);
    if (size == sizes.end() || size->second.runs++ >= kMaxMeasured) continue;
    size->second.most = std::max(size->second.most, bytes_of(run.id));
  }
  int64_t bytes = 0;
  for (const Run& run : runs) {
    const Size& size = sizes.at(run.needs.resource_class);
    if (run.needs.resource_class.empty() || size.runs == 0) return std::nullopt;
    bytes += size.most;
  }
  return bytes;
}

std::vector<std::string> estimate_lines(const Estimate& estimate, int cores, int gpus, const std::string& calibrate) {
  std::vector<std::string> lines;
  if (estimate.known > 0) {
    std::vector<std::string> parts;
    if (estimate.cpu_seconds > 0) {
      parts.push_back(fmt::format("{} on {}", duration_text(estimate.cpu_seconds / cores), counted(cores, "core")));
    }
    if (estimate.gpu_seconds > 0) {
      parts.push_back(gpus == 0
                          ? fmt::format("{:.2g} GPU hours", estimate.gpu_seconds / 3600)
                          : fmt::format("{} on {}", duration_text(estimate.gpu_seconds / gpus), counted(gpus, "GPU")));
    }
    std::string& line = lines.emplace_back();
    if (estimate.unknown > 0) {
      line = fmt::format("{} of {}: ", estimate.known, counted(estimate.known + estimate.unknown, "run"));
    }
    line += fmt::format("about {}", fmt::join(parts, " and "));
    if (estimate.error > 0) line += fmt::format(", ± {:.0f} %", std::max(1.0, 100 * estimate.error));
    if (estimate.ended > 0)
      line += fmt::format(", from {} of the same resource classes", counted(estimate.ended, "ended run"));
    if (estimate.calibrated == estimate.known) {
      line += ", by calibration";
    } else if (estimate.calibrated > 0) {
      line += fmt::format("; {} by calibration", counted(estimate.calibrated, "run"));
    }
  }
  if (estimate.untimed > 0) {
    const std::string classes = estimate.untimed_classes == 1
                                    ? "one resource class"
                                    : fmt::format("{} resource classes", estimate.untimed_classes);
    lines.push_back(fmt::format("{} of {} {} not been timed: {}", counted(estimate.untimed, "run"), classes,
                                estimate.untimed == 1 ? "has" : "have", calibrate));
  }
  if (const int64_t classless = estimate.unknown - estimate.untimed; classless > 0) {
    lines.push_back(fmt::format("not known for {} of which the program names no resource class or measures no time",
                                counted(classless, "run")));
  }
  return lines;
}

}  // namespace tearless::harness
