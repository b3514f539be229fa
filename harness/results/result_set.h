// The rows of one moment, read from the database: of sweeps as they were submitted, and of the runs that the words of a
// command line select.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/row.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {

struct ResultSet {
  std::vector<Row> rows = {};
  std::vector<Row> beside = {};  // not asked for: runs that the same sweeps derive from `rows`; states alone
  std::unique_ptr<const Store> store = nullptr;  // null: nothing was run in the workspace yet
  // Patterns of the metrics of which a point is of all updates since the one before it (`windows` of an answer of
  // check); unset: the training program does not say, or was not asked.
  std::optional<std::vector<std::string>> windows = {};
};

enum class Read {
  kStates,   // state, failure class, reason and step: of the database alone
  kResults,  // scores and attempts too, compared with the run folders (Store::result_of())
};

/// Fills in Row::trained of the rows of a grid or a sweep, by their labels.
void set_trained(std::vector<Row>& rows);

/// Leaves out the derived runs whose trained run is among the rows of the same sweep.
void leave_out_derived(std::vector<Row>& rows);

/// Reads the results of rows whose runs are known, in one snapshot. Results of another program than `program` are
/// stale; those of a sweep's row, if they are of other numerics than the sweep was submitted with, or of another file
/// than its program is now. `store` may be null: nothing is known then.
void read_results(const Store* store, std::vector<Row>& rows, const ProgramNow& program = {});

/// Fills in Row::known_since and Row::sweeps, as far as the sweeps of a run are still there, if the rows have several
/// seeds.
void read_beginnings(ResultSet& results);

/// The rows of a sweep in the grid's order, as Read::kStates. `states`: only those that are in one of them; empty: all.
std::vector<Row> rows_of(const Store& store, const Sweep& sweep, const std::vector<RunState>& states = {});

enum class Duplicates {
  kNewest,  // as the newest of the selected sweeps has it, at its first place there
  kAll,     // as each of them has it, at every place
};

/// The rows of the selected runs, in the order of the sweeps and of their grids, after those of runs that no sweep has.
/// A run that was named without a sweep is given as the newest sweep has it. Results are stale as in read_results().
ResultSet selected_rows(std::unique_ptr<const Store> store, const Selection& selection, Duplicates duplicates,
                        Read read);

}  // namespace tearless::harness
