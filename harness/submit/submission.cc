#include "harness/submit/submission.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "harness/grid/layout.h"
#include "harness/store/frozen_grid.h"
#include "harness/store/program_copies.h"
#include "harness/store/sweep_directory.h"
#include "harness/store/workspace_format.h"
#include "harness/submit/frozen_program.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

nlohmann::ordered_json coordinates_of(const Grid& grid, const PlannedRun& run) {
  auto coordinates = nlohmann::ordered_json::object();
  for (const Axis& axis : grid.axes) coordinates[axis.name] = run.coordinates.at(axis.name);
  return coordinates;
}

SweepPolicy policy_of(const SubmissionOptions& asked, const GridPolicy& of_grid) {
  SweepPolicy policy;
  const auto first = [](const auto& a, const auto& b) { return a ? a : b; };
  if (const auto minutes = first(asked.stall_minutes, of_grid.stall_minutes)) policy.stall_seconds = 60 * *minutes;
  policy.grace_seconds = first(asked.grace_seconds, of_grid.grace_seconds).value_or(policy.grace_seconds);
  policy.memory_bytes = first(asked.memory_bytes, of_grid.memory_bytes).value_or(policy.memory_bytes);
  policy.tries = of_grid.tries;
  return policy;
}

Sweep sweep_of(const Submission& submission, const Program& program, const SubmissionOptions& options) {
  const Grid& grid = submission.grid;
  const Probe& probe = submission.program;
  Sweep sweep{.id = "",
              .title = grid.title,
              .grid_file = fs::absolute(grid.file).string(),
              .submitted_at = utc_now(),
              .runs = {},
              .program = fs::absolute(program.path()).string(),
              .stamp = {{"program", probe.program},
                        {"version", probe.version},
                        {"runtime", probe.runtime},
                        {"numerics", probe.numerics}},
              .policy = policy_of(options, grid.policy),
              .state = SweepState::kActive,
              .reason = "",
              .priority = 0};
  const TableSpec& table = grid.views.front().table;
  const Layout layout = layout_of(grid, table);
  for (const PlannedRun& run : submission.plan) {
    const CheckAnswer& answer = run.answer;
    // Runs of one row of the first table have one rank, so that rows become complete one after another.
    const auto row = layout.row_index.find(project(run.point, table.rows));
    sweep.runs.push_back({.id = answer.id,
                          .canonical = answer.waiting ? "" : answer.canonical,
                          .waiting_for = answer.waiting ? answer.waiting_for : "",
                          .parameters = answer.parameters,
                          .memory_bytes = answer.memory_bytes,
                          .updates = answer.updates,
                          .coordinates = coordinates_of(grid, run),
                          .seed = run.point.seed,
                          .local = answer.local,
                          .device = answer.device,
                          .threads = answer.threads,
                          .rank = row == layout.row_index.end() ? 0 : static_cast<int64_t>(row->second),
                          .shape = shape_of(answer),
                          .data = answer.data});
  }
  sweep.id = sweep_id(sweep, submission.grid_text);
  return sweep;
}

// A run that was cut down is as fast, and needs as much memory, as the whole run.
void take_shapes(std::vector<PlannedRun>& cut_down, const std::vector<PlannedRun>& whole) {
  for (size_t i = 0; i < cut_down.size(); ++i) cut_down[i].answer.shape = shape_of(whole[i].answer);
}

void keep_one_of_each_shape(std::vector<PlannedRun>& plan, std::set<std::string> seen) {
  std::erase_if(plan, [&](const PlannedRun& run) {
    return run.answer.waiting || run.answer.shape.empty() || !seen.insert(run.answer.shape).second;
  });
}

}  // namespace

std::string shape_of(const CheckAnswer& answer) {
  if (!answer.shape.empty() || !answer.parameters || !answer.memory_bytes) return answer.shape;
  return fmt::format("{} {} {} {}", answer.device, answer.threads, *answer.parameters, *answer.memory_bytes);
}

Submission prepare_submission(const fs::path& grid_file, const fs::path& engine, const SubmissionOptions& options) {
  Submission submission{
      .grid = load_grid(grid_file), .grid_text = read_file(grid_file), .plan = {}, .program = {}, .sweep = {}};
  const Grid& grid = submission.grid;
  const Program program = Program::find(engine, grid.program);
  const Only only(grid, options.only);
  submission.plan = plan_runs(grid, only, program, options.smoke);
  if (const std::vector<std::string> errors = errors_of(grid, submission.plan); !errors.empty()) {
    fail("{}\nNothing was started: correct the grid first", fmt::join(errors, "\n"));
  }
  if (options.smoke) take_shapes(submission.plan, plan_runs(grid, only, program));
  if (options.calibrated) keep_one_of_each_shape(submission.plan, *options.calibrated);
  submission.program = program.probe();
  submission.sweep = sweep_of(submission, program, options);
  return submission;
}

void write_submission(const Workspace& workspace, Submission& submission) {
  require_this_format(workspace);
  Sweep& sweep = submission.sweep;
  const LockFile lock = lock_programs(workspace);
  sweep.program = freeze_program(workspace, Program(sweep.program), submission.program).string();
  freeze_grid(workspace, sweep.id, submission.grid);
  freeze_sweep(workspace, sweep, submission.grid_text);
}

}  // namespace tearless::harness
