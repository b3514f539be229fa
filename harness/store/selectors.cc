#include "harness/store/selectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoSweep = "this workspace has no sweep; to submit a grid: tearless submit GRID";

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

struct Places {
  int64_t first, last;
};

// "3" or "3-7"; nullopt for any other word. A number of more than six digits is the beginning of an id.
std::optional<Places> places_in(const std::string& word) {
  const size_t dash = word.find('-');
  const auto first = number_in(std::string_view(word).substr(0, dash));
  const auto last = dash == std::string::npos ? first : number_in(std::string_view(word).substr(dash + 1));
  if (!first || !last || word.size() > 13 || *last > 999'999) return std::nullopt;
  if (*last < *first) fail("{} is no range: its end comes before its beginning", word);
  return Places{*first, *last};
}

std::optional<RunState> state_in(const std::string& word) {
  try {
    return state_named(word);
  } catch (const std::logic_error&) {
    return std::nullopt;
  }
}

// Conditions on the runs of sweeps.
struct Filter {
  std::vector<Places> places;
  std::set<RunState> states;
  std::map<std::string, std::set<std::string>> labels;  // axis → labels

  bool is_empty() const { return places.empty() && states.empty() && labels.empty(); }

  bool admits(const RunRecord& run, int64_t place) const {
    const auto covers = [place](const Places& p) { return p.first <= place && place <= p.last; };
    if (!places.empty() && std::none_of(places.begin(), places.end(), covers)) return false;
    if (!states.empty() && !states.contains(run.state)) return false;
    return std::all_of(labels.begin(), labels.end(), [&](const auto& axis) {
      if (axis.first == "seed") return axis.second.contains(std::to_string(run.seed));
      return axis.second.contains(label_on(run.coordinates, axis.first));
    });
  }
};

std::vector<std::string> sweeps_named(const std::vector<Sweep>& sweeps, const std::string& word) {
  if (sweeps.empty() && (word == "last" || word == "all")) fail(kNoSweep);
  if (word == "last") return {sweeps.front().id};
  std::vector<std::string> found;
  for (const Sweep& sweep : sweeps) {
    if (sweep.id == word) return {sweep.id};
    if (word == "all" || sweep.id.starts_with(word)) found.push_back(sweep.id);
  }
  if (found.empty() && word.ends_with(".toml")) {
    for (const Sweep& sweep : sweeps) {
      if (is_of_grid(sweep, word)) return {sweep.id};  // the newest is first
    }
    fail("{} was not submitted in this workspace", word);
  }
  if (found.size() > 1 && word != "all")
    fail("\"{}\" could be any of {} sweeps: {}", word, found.size(), fmt::join(found, ", "));
  return found;
}

}  // namespace

std::vector<std::string> fixed_words() {
  std::vector<std::string> words = {"last", "all"};
  for (int state = 0; state <= static_cast<int>(RunState::kCancelled); ++state) {
    words.emplace_back(name_of(static_cast<RunState>(state)));
  }
  return words;
}

Selection select(const Store& store, const std::vector<std::string>& words) {
  const std::vector<Sweep> sweeps = store.sweeps();
  Selection selection;
  Filter filter;
  for (const std::string& word : words) {
    if (const auto places = places_in(word)) {
      filter.places.push_back(*places);
    } else if (const auto state = state_in(word)) {
      filter.states.insert(*state);
    } else if (const size_t equals = word.find('='); equals != std::string::npos) {
      filter.labels[word.substr(0, equals)].insert(word.substr(equals + 1));
    } else if (const std::vector<std::string> named = sweeps_named(sweeps, word); !named.empty()) {
      selection.sweeps.insert(selection.sweeps.end(), named.begin(), named.end());
    } else {
      const std::vector<std::string> runs = store.ids_starting_with(word);
      if (runs.empty()) {
        fail("\"{}\" is no sweep, run, state, place or axis=label of this workspace; tearless status lists them", word);
      }
      if (runs.size() > 1) fail("\"{}\" could be any of {} runs: {}", word, runs.size(), fmt::join(runs, ", "));
      selection.runs.push_back(runs.front());
    }
  }
  if (filter.is_empty()) return selection;

  if (selection.sweeps.empty()) {
    if (sweeps.empty()) fail(kNoSweep);
    selection.sweeps.push_back(sweeps.front().id);
  }
  std::set<std::string> chosen(selection.runs.begin(), selection.runs.end());
  const size_t named = chosen.size();
  for (const std::string& sweep : selection.sweeps) {
    int64_t place = 0;
    for (const RunRecord& run : store.runs_of(sweep)) {
      if (filter.admits(run, ++place) && chosen.insert(run.id).second) selection.runs.push_back(run.id);
    }
  }
  if (chosen.size() == named) {
    fail("no run of {} is meant by \"{}\"", fmt::join(selection.sweeps, ", "), fmt::join(words, " "));
  }
  selection.narrowed = std::exchange(selection.sweeps, {});
  return selection;
}

Selection select_or_last(const Store& store, const std::vector<std::string>& words) {
  return select(store, words.empty() ? std::vector<std::string>{"last"} : words);
}

std::vector<std::string> runs_in(const Store& store, const Selection& selection) {
  std::vector<std::string> runs;
  std::set<std::string> seen;
  const auto add = [&](const std::string& id) {
    if (seen.insert(id).second) runs.push_back(id);
  };
  for (const std::string& id : selection.runs) add(id);
  for (const std::string& sweep : selection.sweeps) {
    for (const RunRecord& run : store.runs_of(sweep)) add(run.id);
  }
  return runs;
}

bool is_of_grid(const Sweep& sweep, const fs::path& grid_file) {
  return fs::path(sweep.grid_file).lexically_normal() == fs::absolute(grid_file).lexically_normal();
}

std::string one_sweep(const Store& store, const std::string& word) {
  const std::vector<std::string> named = sweeps_named(store.sweeps(), word);
  if (named.empty()) fail("\"{}\" is no sweep of this workspace; tearless status lists them", word);
  if (named.size() > 1) fail("\"{}\" means {} sweeps: {}; name one", word, named.size(), fmt::join(named, ", "));
  return named.front();
}

}  // namespace tearless::harness
