// What the runs of a plan ask of an executor's cluster.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/plan/estimate.h"
#include "harness/slurm/executor.h"

namespace tearless::harness {

struct ClusterPlan {
  std::string executor;
  std::optional<int64_t> workers = {};  // that would be submitted; unset: people start them
  Estimate estimate = {};
  std::string never = {};  // why some of the runs are never trained there, one phrase; "" if all are
};

ClusterPlan cluster_plan_of(const Executor& executor, const std::vector<Run>& runs, const Estimate& estimate);

/// "Executor a100: 8 workers, about 12 core hours and 340 GPU hours", and a line for what else there is to say.
std::vector<std::string> lines_of(const ClusterPlan& plan);
nlohmann::json to_json(const ClusterPlan& plan);

}  // namespace tearless::harness
