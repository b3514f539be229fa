#include "harness/store/selected_runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tearless::harness {
namespace {

void keep_newest(const Store& store, std::vector<SelectedRun>& runs) {
  std::map<std::string, size_t> age;  // of a sweep; 0 is the newest
  for (const Sweep& sweep : store.sweeps()) age.emplace(sweep.id, age.size());
  using Position = std::pair<size_t, int64_t>;  // age and place
  const auto position_of = [&](const SelectedRun& at) { return Position(age[at.sweep], at.place); };
  std::map<std::string, Position> kept;
  for (const SelectedRun& at : runs) {
    const auto [first, is_new] = kept.emplace(at.run.id, position_of(at));
    if (!is_new) first->second = std::min(first->second, position_of(at));
  }
  std::erase_if(runs, [&](const SelectedRun& at) { return kept.at(at.run.id) != position_of(at); });
}

}  // namespace

std::vector<SelectedRun> selected_runs(const Store& store, const Selection& selection, EachRun each) {
  std::vector<SelectedRun> found;
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
      found.push_back({.sweep = "", .place = 0, .run = store.known_run(id)});
    } else if (!has_any(having)) {
      sweeps.push_back(having.back());
    }
  }
  const std::set<std::string> whole(selection.sweeps.begin(), selection.sweeps.end());
  const std::set<std::string> single(selection.runs.begin(), selection.runs.end());
  for (const std::string& sweep : sweeps) {
    int64_t place = 0;
    for (RunRecord& run : store.runs_of(sweep)) {
      ++place;
      if (whole.contains(sweep) || single.contains(run.id)) found.push_back({sweep, place, std::move(run)});
    }
  }
  if (each == EachRun::kOnce) keep_newest(store, found);
  return found;
}

}  // namespace tearless::harness
