#include "harness/schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tearless::harness {

std::vector<PlannedRun> plan_runs(const Grid& grid, const Only& only, const Program& program, bool smoke) {
  std::vector<PlannedRun> plan;
  for (GridPoint& point : runs_of(grid, only)) {
    plan.push_back({.point = std::move(point), .coordinates = {}, .answer = {}});
  }
  program.check(
      plan.size(),
      [&](size_t i) {
        RunSpec spec = materialise(grid, plan[i].point);
        plan[i].coordinates = std::move(spec.coordinates);
        return CheckQuestion{std::move(spec.settings), grid.folder.string(), std::move(spec.folders), smoke};
      },
      [&](size_t i, CheckAnswer answer) { plan[i].answer = std::move(answer); });
  return plan;
}

std::vector<std::string> errors_of(const Grid& grid, const std::vector<PlannedRun>& plan) {
  std::vector<std::string> errors;
  for (const PlannedRun& run : plan) {
    if (run.answer.error.empty()) continue;
    const Setting* setting = refused_setting(grid, run.point, run.answer.key, run.answer.error);
    std::string sentence = fmt::format("{}: {}", setting ? setting->location : grid.file.string(), run.answer.error);
    if (std::find(errors.begin(), errors.end(), sentence) == errors.end()) errors.push_back(std::move(sentence));
  }
  return errors;
}

}  // namespace tearless::harness
