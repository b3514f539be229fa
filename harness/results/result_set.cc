#include "harness/results/result_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/print.h"
#include "base/words.h"
#include "harness/runs/measured.h"

namespace tearless::harness {
namespace {

using SharedSweep = std::shared_ptr<const Sweep>;

// What the database says without the run's folder.
RunResult recorded(const RunRecord& record) {
  return {
      .id = record.id, .state = record.state, .failure = record.failure, .reason = record.reason, .step = record.step};
}

Row row_of(const SharedSweep& sweep, RunRecord record) {
  Row row{.sweep = sweep, .place = sweep ? record.place + 1 : 0, .result = recorded(record)};
  row.run = std::move(record);
  row.derivation = derivation_of(row.run);
  row.trained = row.is_trained() ? row.run.id : "";  // of a derived run set_trained() finds it
  return row;
}

// Derived runs have the labels of their trained run, and then one of their own.
std::pair<Labels, int64_t> origin_of(const Row& row) {
  Labels labels = row.run.coordinates;
  if (!row.is_trained() && !labels.empty()) labels.pop_back();
  return {std::move(labels), row.run.seed};
}

std::vector<Row> all_rows_of(const Store& store, const SharedSweep& sweep, const std::vector<RunState>& states = {}) {
  std::vector<Row> rows;
  for (RunRecord& record : store.runs_of(sweep->id, states)) rows.push_back(row_of(sweep, std::move(record)));
  set_trained(rows);
  return rows;
}

void keep_newest(const Store& store, std::vector<Row>& rows) {
  std::map<std::string, size_t> age;  // of a sweep; 0 is the newest
  for (const Sweep& sweep : store.sweeps()) age.emplace(sweep.id, age.size());
  using Position = std::pair<size_t, int64_t>;  // age and place
  const auto position_of = [&](const Row& row) { return Position(age[row.sweep_id()], row.place); };
  std::map<std::string, Position> kept;
  for (const Row& row : rows) {
    const auto [first, is_new] = kept.emplace(row.run.id, position_of(row));
    if (!is_new) first->second = std::min(first->second, position_of(row));
  }
  std::erase_if(rows, [&](const Row& row) { return kept.at(row.run.id) != position_of(row); });
}

// The sweeps to read for a selection, each once, and the rows of runs that no sweep has.
std::vector<std::string> sweeps_in(const Store& store, const Selection& selection, std::vector<Row>& without_sweep) {
  std::vector<std::string> sweeps;
  const auto has_any = [&](const std::vector<std::string>& ids) {
    return std::find_first_of(sweeps.begin(), sweeps.end(), ids.begin(), ids.end()) != sweeps.end();
  };
  for (const auto* named : {&selection.sweeps, &selection.narrowed}) {
    for (const std::string& sweep : *named) {
      if (!has_any({sweep})) sweeps.push_back(sweep);
    }
  }
  for (const std::string& id : selection.runs) {
    const std::vector<std::string> having = store.sweeps_of(id);
    if (having.empty()) {
      without_sweep.push_back(row_of(nullptr, store.known_run(id)));
    } else if (!has_any(having)) {
      sweeps.push_back(having.back());
    }
  }
  return sweeps;
}

// Whether a row is that of a derived run whose trained run is among `rows` in the same sweep.
std::function<bool(const Row&)> derives_from_one_of(const std::vector<Row>& rows) {
  std::set<std::pair<std::string, std::string>> trained;
  for (const Row& row : rows) {
    if (row.is_trained()) trained.emplace(row.sweep_id(), row.trained);
  }
  return [trained = std::move(trained)](const Row& row) {
    return !row.is_trained() && trained.contains({row.sweep_id(), row.trained});
  };
}

ResultSet select_rows(const Store& store, const Selection& selection, Duplicates duplicates) {
  ResultSet found;
  const std::vector<std::string> sweeps = sweeps_in(store, selection, found.rows);
  const std::set<std::string> whole(selection.sweeps.begin(), selection.sweeps.end());
  const std::set<std::string> single(selection.runs.begin(), selection.runs.end());
  for (const std::string& id : sweeps) {
    const std::optional<Sweep> known = store.sweep(id);
    if (!known) continue;  // deleted meanwhile
    for (Row& row : all_rows_of(store, std::make_shared<const Sweep>(*known))) {
      const bool is_wanted = whole.contains(id) || single.contains(row.run.id);
      (is_wanted ? found.rows : found.beside).push_back(std::move(row));
    }
  }
  if (duplicates == Duplicates::kNewest) keep_newest(store, found.rows);
  std::erase_if(found.beside, std::not_fn(derives_from_one_of(found.rows)));
  return found;
}

void read_measured(Row& row) {
  const std::string prefix = row.is_trained() ? "" : row.derivation + ".";
  for (const auto& [name, value] : measured_numbers(row.result.attempts)) row.result.measured[prefix + name] = value;
  row.result.measured_on = measured_on(row.result.attempts);
}

ProgramNow program_of(const Sweep& sweep, const Store& store) {
  ProgramNow program;
  if (sweep.stamp.contains("numerics")) program.numerics = sweep.stamp.at("numerics");
  if (sweep.stamp.contains("identity")) program.file = file_hash(store.root() / sweep.program);
  return program;
}

}  // namespace

void set_trained(std::vector<Row>& rows) {
  for (Row& row : rows) row.trained = row.is_trained() ? row.run.id : "";
  if (std::ranges::all_of(rows, &Row::is_trained)) return;  // the usual case, and there may be 200,000 rows
  std::map<std::pair<Labels, int64_t>, std::string> ids;
  for (const Row& row : rows) {
    if (row.is_trained()) ids.emplace(origin_of(row), row.run.id);
  }
  for (Row& row : rows) {
    const auto trained = row.is_trained() ? ids.end() : ids.find(origin_of(row));
    if (trained != ids.end()) row.trained = trained->second;
  }
}

void leave_out_derived(std::vector<Row>& rows) { std::erase_if(rows, derives_from_one_of(rows)); }

void read_beginnings(ResultSet& results) {
  if (!results.store) return;
  const bool has_replicates =
      std::ranges::any_of(results.rows, [&](const Row& row) { return row.run.seed != results.rows.front().run.seed; });
  if (!has_replicates) return;
  auto submissions = results.store->submissions();
  for (Row& row : results.rows) {
    const auto consider = [&](const std::string& time) {
      if (!time.empty() && (row.known_since.empty() || time < row.known_since)) row.known_since = time;
    };
    for (const auto& [sweep, time] : submissions[row.run.id]) {
      row.sweeps.insert(sweep);
      consider(time);
    }
    for (const AttemptRecord& attempt : row.result.attempts) consider(attempt.started_at);
  }
}

void read_results(const Store* store, std::vector<Row>& rows, const ProgramNow& program) {
  std::map<const Sweep*, ProgramNow> programs;
  const auto program_of_row = [&](const Row& row) -> const ProgramNow& {
    if (!row.sweep) return program;
    const auto [known, is_new] = programs.try_emplace(row.sweep.get());
    if (is_new) known->second = program_of(*row.sweep, *store);
    return known->second;
  };
  const auto read = [&] {
    for (Row& row : rows) {
      row.result = {.id = row.run.id};
      if (store && row.refusal.empty()) row.result = store->result_of(row.run.id, program_of_row(row));
      read_measured(row);
      if (!row.run.waiting_for.empty()) row.result.state = RunState::kWaitingData;
      if (row.sweep && row.result.state == RunState::kWaitingData) row.run.waiting_for = row.result.reason;
    }
  };
  store ? store->in_snapshot(read) : read();
  const auto lacking = std::ranges::count_if(rows, [](const Row& row) { return row.result.lacks_records; });
  if (lacking > 0) {
    notice(
        fmt::format("{} {} attempts without start.json or exit.json, and marks or measured numbers may be wrong for "
                    "it: `tearless verify` names them",
                    counted(lacking, "run"), lacking == 1 ? "has" : "have"));
  }
}

std::vector<Row> rows_of(const Store& store, const Sweep& sweep, const std::vector<RunState>& states) {
  return all_rows_of(store, std::make_shared<const Sweep>(sweep), states);
}

ResultSet selected_rows(std::unique_ptr<const Store> store, const Selection& selection, Duplicates duplicates,
                        Read read) {
  ResultSet found;
  store->in_snapshot([&] {
    found = select_rows(*store, selection, duplicates);
    if (read == Read::kResults) read_results(store.get(), found.rows);
  });
  found.store = std::move(store);
  return found;
}

}  // namespace tearless::harness
