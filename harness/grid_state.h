// A grid's runs beside what the store knows of them: where plan, table and explain begin. Looks only, changes nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/commands.h"
#include "harness/grid/grid.h"
#include "harness/schedule/plan.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct GridState {
  Grid grid;
  std::vector<PlannedRun> plan;
  std::vector<RunResult> results;      // one a planned run; state waiting_data where its corpus is missing
  std::vector<std::string> errors;     // why the training program refuses some of the runs, a sentence each
  std::unique_ptr<const Store> store;  // null where there is no database yet
};

/// What the store says of each planned run, checked against its folder (store/agreement.h). `store` may be null.
std::vector<RunResult> results_of(const std::vector<PlannedRun>& plan, const Store* store, const Workspace& workspace,
                                  int64_t numerics);

/// Says on standard error which results lie in the folders and are not in the database yet.
GridState look_up(const std::filesystem::path& file, const std::vector<std::string>& only, const Globals& globals);

/// " --workspace elsewhere" where that is not the default: what a command that a person is told to type must end in.
std::string workspace_option(const Globals& globals);

/// The run whose id starts with `prefix`; UserError where there is none, or more than one.
std::string find_run(const Store* store, const std::string& prefix, const Globals& globals);

}  // namespace tearless::harness
