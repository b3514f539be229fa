#include "harness/submission_options.h"

#include <utility>

#include "harness/number_option.h"

namespace tearless::harness {

void SubmissionFlags::add_to(CLI::App& app) {
  app.add_option("--only", only, "axis=label: these runs only (repeat for more labels and axes; seed=N too)");
  app.add_flag("--smoke", smoke,
               "train every run for a few updates only, to check that the grid works (in WORKSPACE/smoke)");
  app.add_option("--priority", priority, "sweeps of higher priority go first (default: 0, or what it was)");
  app.add_option("--stall-timeout", stall_minutes,
                 "minutes without new output or metrics after which a run is stopped (0: never)")
      ->check(number_from(0))
      ->capture_default_str();
  app.add_option("--grace", grace_seconds,
                 "seconds that a run has to write a checkpoint and exit when it is asked to stop; then it is killed")
      ->check(whole_number_from(0))
      ->capture_default_str();
}

SubmissionOptions SubmissionFlags::options() const {
  return {
      .only = only, .smoke = smoke, .policy = {.stall_seconds = stall_minutes * 60, .grace_seconds = grace_seconds}};
}

void ServiceFlags::add_to(CLI::App& app) {
  app.add_option("--jobs", jobs,
                 "runs at the same time on the CPU (default: as many as the cores allow for their threads)")
      ->check(whole_number_from(1));
  app.add_option("--runs-per-gpu", runs_per_gpu,
                 "runs at the same time on each GPU; more than 1 pays for small models (docs/speed.md); results do not "
                 "depend on it")
      ->check(whole_number_from(1))
      ->capture_default_str();
  app.add_option(
      "--on-end", on_end,
      "a shell command that is run when a run or a sweep ends, with TEARLESS_EVENT, TEARLESS_ID and others in "
      "its environment (docs/daemon.md)");
}

ServiceOptions ServiceFlags::options(const std::string& kind, std::vector<ProgramDevice> devices) const {
  return {.kind = kind, .jobs = jobs, .runs_per_gpu = runs_per_gpu, .devices = std::move(devices), .on_end = on_end};
}

}  // namespace tearless::harness
