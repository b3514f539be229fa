#include "harness/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tearless::harness {
std::vector<PlannedRun> plan_runs(const Grid& grid, const Only& only, const Program& program, bool smoke) {
  std::vector<GridPoint> points = runs_of(grid, only);
  std::vector<CheckAnswer> answers = program.check(points.size(), [&](size_t i) {
    RunSpec spec = materialise(grid, points[i]);
    spec.smoke = smoke;
    return spec;
  });
  std::vector<PlannedRun> plan;
  for (size_t i = 0; i < points.size(); ++i) {
    Run& run = answers[i].run;
    run.seed = points[i].seed;
    for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
      run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[points[i].index[axis]].label);
    }
    plan.push_back({std::move(points[i]), std::move(answers[i])});
  }
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
