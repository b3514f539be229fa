#include "harness/commands/cluster_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/words.h"

namespace tearless::harness {
namespace {

std::string hours_text(double seconds, const char* of) {
  const double hours = seconds / 3600;
  return fmt::format("{:.{}f} {} hours", hours, hours < 10 ? 1 : 0, of);
}

}  // namespace

ClusterPlan cluster_plan_of(const Executor& executor, const std::vector<Run>& runs, const Estimate& estimate) {
  ClusterPlan plan{.executor = executor.name, .estimate = estimate};
  std::map<Needs, int64_t> waiting;
  for (const Run& run : runs) ++waiting[run.needs];
  for (const auto& [needs, count] : waiting) {
    if (plan.never.empty()) plan.never = never_fits(executor, needs);
  }
  if (!executor.slurm) return plan;
  int64_t workers = 0;
  const auto allocation_of = [&](const Needs& needs) { return allocation_for(executor, needs); };
  for (const auto& [allocation, count] : workers_for(executor, waiting, allocation_of)) workers += count;
  plan.workers = std::min(workers, executor.workers);
  return plan;
}

std::vector<std::string> lines_of(const ClusterPlan& plan) {
  std::vector<std::string> parts;
  if (plan.workers) parts.push_back(counted(*plan.workers, "worker"));
  std::vector<std::string> hours;
  if (plan.estimate.cpu_seconds > 0) hours.push_back(hours_text(plan.estimate.cpu_seconds, "core"));
  if (plan.estimate.gpu_seconds > 0) hours.push_back(hours_text(plan.estimate.gpu_seconds, "GPU"));
  if (!hours.empty()) parts.push_back(fmt::format("about {}", fmt::join(hours, " and ")));
  if (plan.estimate.unknown > 0) {
    parts.push_back(
        fmt::format("{}{} not timed yet", hours.empty() ? "" : "without ", counted(plan.estimate.unknown, "run")));
  }
  std::vector<std::string> lines;
  if (!parts.empty()) lines.push_back(fmt::format("Executor {}: {}", plan.executor, fmt::join(parts, ", ")));
  if (!plan.never.empty()) lines.push_back(fmt::format("Some runs are never trained there: {}", plan.never));
  return lines;
}

nlohmann::json to_json(const ClusterPlan& plan) {
  return {{"name", plan.executor},
          {"workers", plan.workers ? nlohmann::json(*plan.workers) : nlohmann::json()},
          {"core_hours", plan.estimate.cpu_seconds / 3600},
          {"gpu_hours", plan.estimate.gpu_seconds / 3600},
          {"runs_without", plan.estimate.unknown},
          {"never", plan.never}};
}

}  // namespace tearless::harness
