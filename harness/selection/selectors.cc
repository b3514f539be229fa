#include "harness/selection/selectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/numbers.h"
#include "base/spelling.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/grid/packaged.h"
#include "harness/grid/paper.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_without_sweep(const Store& store) {
  fail("this workspace has no sweep; to submit a grid: tearless submit GRID{}", workspace_option(store.root()));
}

std::optional<int64_t> number_in(std::string_view text) {
  const auto number = number_of<int64_t>(text);
  return number.value_or(0) < 1 ? std::nullopt : number;
}

constexpr size_t kMaxNamed = 8;  // runs in a message

bool is_same_without_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
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

// Such as one that is to be tried again, and whose sweep was paused because several crashed alike.
bool failed_last(const RunRecord& run) {
  return run.state == RunState::kQueued &&
         (run.failure == FailureClass::kCrashed || run.failure == FailureClass::kStalled ||
          run.failure == FailureClass::kOutOfMemory);
}

// One word that narrows down sweeps.
struct Condition {
  std::string word;
  std::string kind;  // words of one kind are alternatives
  std::function<bool(const RunRecord& run, int64_t place)> holds;
  bool has_meaning;  // whatever the sweeps hold
};

// Nullopt for a word that names sweeps or a run.
std::optional<Condition> condition_in(const std::string& word) {
  if (const auto places = places_in(word)) {
    const auto holds = [places](const RunRecord&, int64_t place) {
      return places->first <= place && place <= places->last;
    };
    return Condition{word, "place", holds, /*has_meaning=*/false};
  }
  if (const auto state = state_in(word)) {
    const auto holds = [state](const RunRecord& run, int64_t) {
      return run.state == *state || (state == RunState::kFailed && failed_last(run));
    };
    return Condition{word, "state", holds, /*has_meaning=*/true};
  }
  if (!is_label_word(word)) return std::nullopt;
  const size_t equals = word.find('=');
  const auto holds = [axis = word.substr(0, equals), label = word.substr(equals + 1)](const RunRecord& run, int64_t) {
    return is_same_value(axis == "seed" ? std::to_string(run.seed) : label_on(run.coordinates, axis), label);
  };
  return Condition{word, word.substr(0, equals + 1), holds, /*has_meaning=*/false};
}

// All conditions that words make on the runs of sweeps.
class Filter {
 public:
  /// False for a word that makes none.
  bool add(const std::string& word) {
    std::optional<Condition> condition = condition_in(word);
    if (condition) conditions_.push_back(std::move(*condition));
    return condition.has_value();
  }
  bool is_empty() const { return conditions_.empty(); }

  bool admits(const RunRecord& run, int64_t place) {
    std::map<std::string, bool> holds;  // kind → one of its words
    for (Condition& condition : conditions_) {
      const bool one = condition.holds(run, place);
      condition.has_meaning |= one;
      holds[condition.kind] |= one;
    }
    for (const auto& [axis, label] : run.coordinates) labels_.insert(axis + "=" + label);
    return std::all_of(holds.begin(), holds.end(), [](const auto& kind) { return kind.second; });
  }

  /// UserError for a word that held for no run that was asked about.
  void require_meaning(const std::vector<std::string>& sweeps) const {
    for (const Condition& condition : conditions_) {
      if (condition.has_meaning) continue;
      fail("no run of {} is meant by \"{}\"{}", fmt::join(sweeps, ", "), condition.word,
           did_you_mean(condition.word, std::vector<std::string>(labels_.begin(), labels_.end())));
    }
  }

 private:
  std::vector<Condition> conditions_;
  std::set<std::string> labels_;  // axis=label of the runs that were asked about
};

// The sweeps that a word names if it names none by its id.
std::vector<std::string> named_by_people(const Store& store, const std::vector<Sweep>& sweeps,
                                         const std::string& word) {
  for (const Sweep& sweep : sweeps) {
    if (is_of_grid(sweep, word)) return {sweep.id};  // the newest is first
  }
  if (is_grid_word(word)) {
    if (!fs::exists(word)) fail("there is no file {}, and it was not submitted in this workspace", word);
    fail("{} was not submitted in this workspace; to do so: tearless submit {}{}", word, shell_word(word),
         workspace_option(store.root()));
  }
  std::vector<std::string> ids, list;
  for (const Sweep& sweep : sweeps) {
    if (sweep.name != word) continue;
    ids.push_back(sweep.id);
    list.push_back(fmt::format("{} (submitted {})", sweep.id, sweep.submitted_at));
  }
  if (ids.size() > 1) {
    fail("\"{}\" is the name of {} sweeps: {}; type the id of one, or name it: tearless submit GRID --name NAME{}",
         word, ids.size(), fmt::join(list, ", "), workspace_option(store.root()));
  }
  return ids;
}

// Empty for a word that names no sweep.
std::vector<std::string> sweeps_named(const Store& store, const std::vector<Sweep>& sweeps, const std::string& word) {
  std::vector<std::string> ids, beginnings;
  for (const Sweep& sweep : sweeps) ids.push_back(sweep.id);
  if (word == "all") return ids;
  if (word == "last" && ids.empty()) fail_without_sweep(store);
  if (word == "last") return {ids.front()};
  if (std::find(ids.begin(), ids.end(), word) != ids.end()) return {word};
  if (std::vector<std::string> named = named_by_people(store, sweeps, word); !named.empty()) return named;
  for (const std::string& id : ids) {
    if (id.substr(0, id.rfind('-')) == word) return {id};  // the newest is first
  }
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(beginnings),
               [&](const std::string& id) { return id.starts_with(word); });
  if (beginnings.size() > 1) {
    fail("\"{}\" could be any of {} sweeps: {}", word, beginnings.size(), fmt::join(beginnings, ", "));
  }
  return beginnings;
}

std::string run_named(const Store& store, const std::string& word) {
  const std::vector<std::string> runs = store.ids_starting_with(word);
  if (runs.empty()) {
    fail("\"{}\" is no sweep, run, state, place or axis=label of this workspace; tearless status{} lists them{}", word,
         workspace_option(store.root()), packaged_advice(word));
  }
  if (runs.size() > 1) fail("\"{}\" could be any of {} runs: {}", word, runs.size(), fmt::join(runs, ", "));
  return runs.front();
}

}  // namespace

std::vector<std::string> fixed_words() {
  std::vector<std::string> words = {"last", "all"};
  for (int state = 0; state <= static_cast<int>(RunState::kCancelled); ++state) {
    words.emplace_back(name_of(static_cast<RunState>(state)));
  }
  return words;
}

bool is_label_word(const std::string& word) { return word.find('=') != std::string::npos; }
bool is_grid_word(const std::string& word) {
  if (is_label_word(word)) return false;
  const std::string ending = fs::path(word).extension().string();
  if (is_same_without_case(ending, ".toml")) return true;
  const std::vector<std::string> fixed = fixed_words();
  const bool means_more = places_in(word) || std::find(fixed.begin(), fixed.end(), word) != fixed.end();
  std::error_code unreachable;
  return !means_more && fs::is_regular_file(word, unreachable);
}

void require_sweep_name(const std::string& name) {
  const std::vector<std::string> fixed = fixed_words();
  const bool is_number = std::all_of(name.begin(), name.end(), [](char c) { return '0' <= c && c <= '9'; });
  const char* const what = split_words(name).empty()                                    ? "is empty"
                           : printable(name) != name                                    ? "cannot be printed"
                           : name.starts_with('-')                                      ? "looks like an option"
                           : name.starts_with('[')                                      ? "looks like a list"
                           : is_number || places_in(name)                               ? "is a place"
                           : is_label_word(name)                                        ? "looks like axis=label"
                           : is_grid_word(name)                                         ? "looks like a grid file"
                           : std::find(fixed.begin(), fixed.end(), name) != fixed.end() ? "means something else"
                                                                                        : nullptr;
  if (what) fail("--name \"{}\" {}, so it cannot be typed to name a sweep; choose another one", name, what);
}

std::vector<std::string> with_grids_of_papers(const Store& store, const std::vector<std::string>& words) {
  const std::vector<Sweep> sweeps = store.sweeps();
  std::vector<std::string> all;
  for (const std::string& word : words) {
    const std::optional<Paper> paper = is_grid_word(word) ? load_paper(word) : std::nullopt;
    if (!paper) {
      all.push_back(word);
      continue;
    }
    const size_t before = all.size();
    for (const fs::path& grid : paper->grids) {
      if (std::ranges::any_of(sweeps, [&](const Sweep& sweep) { return is_of_grid(sweep, grid); })) {
        all.push_back(grid.string());
      }
    }
    if (all.size() == before) {
      fail("no grid of {} was submitted in this workspace; to do so: tearless submit {}{}", word, shell_word(word),
           workspace_option(store.root()));
    }
  }
  return all;
}

bool names_sweep_or_run(const Store& store, const std::string& word) {
  return std::ranges::any_of(store.sweeps(),
                             [&](const Sweep& sweep) { return sweep.name == word || sweep.id.starts_with(word); }) ||
         !store.ids_starting_with(word).empty();
}

Selection select(const Store& store, const std::vector<std::string>& typed) {
  const std::vector<std::string> words = with_grids_of_papers(store, typed);
  const std::vector<Sweep> sweeps = store.sweeps();
  Selection selection;
  Filter filter;
  bool names_sweeps = false;
  for (const std::string& word : words) {
    if (filter.add(word)) continue;
    const std::vector<std::string> named = sweeps_named(store, sweeps, word);
    if (named.empty() && word != "all") {
      selection.runs.push_back(run_named(store, word));
      continue;
    }
    names_sweeps = true;
    for (const std::string& id : named) {
      const bool is_there = std::find(selection.sweeps.begin(), selection.sweeps.end(), id) != selection.sweeps.end();
      if (!is_there) selection.sweeps.push_back(id);
    }
  }
  if (filter.is_empty()) return selection;

  if (!names_sweeps && sweeps.empty()) fail_without_sweep(store);
  if (!names_sweeps) selection.sweeps.push_back(sweeps.front().id);
  std::set<std::string> chosen(selection.runs.begin(), selection.runs.end());
  for (const std::string& sweep : selection.sweeps) {
    int64_t place = 0;
    for (const RunRecord& run : store.runs_of(sweep)) {
      if (filter.admits(run, ++place) && chosen.insert(run.id).second) selection.runs.push_back(run.id);
    }
  }
  if (!selection.sweeps.empty()) filter.require_meaning(selection.sweeps);
  selection.narrowed = std::exchange(selection.sweeps, {});
  return selection;
}

Selection select_or_last(const Store& store, const std::vector<std::string>& words) {
  return select(store, words.empty() ? std::vector<std::string>{"last"} : words);
}

std::vector<std::string> whole_sweeps(const Store& store, const std::vector<std::string>& words) {
  const Selection chosen = select(store, words);
  if (!chosen.runs.empty() || !chosen.narrowed.empty()) {
    fail("\"{0}\" means runs, and whole sweeps are wanted; to see these runs: tearless runs {1}{2}",
         fmt::join(words, " "), shell_words(words), workspace_option(store.root()));
  }
  return chosen.sweeps;
}

std::string one_sweep(const Store& store, const std::vector<std::string>& words) {
  const std::vector<std::string> meant = words.empty() ? std::vector<std::string>{"last"} : words;
  const std::vector<std::string> named = whole_sweeps(store, meant);
  if (named.empty()) fail_without_sweep(store);
  if (named.size() > 1) {
    fail("\"{}\" means {} sweeps: {}; name one", fmt::join(meant, " "), named.size(), fmt::join(named, ", "));
  }
  return named.front();
}

std::string one_run(const Store& store, const std::vector<std::string>& words) {
  const std::vector<std::string> runs = runs_in(store, select(store, words));
  if (runs.size() == 1) return runs.front();
  if (runs.empty()) fail("no run is meant by \"{}\"", fmt::join(words, " "));
  if (runs.size() <= kMaxNamed) {
    fail("\"{}\" means {} runs, and one is wanted: {}", fmt::join(words, " "), runs.size(), fmt::join(runs, ", "));
  }
  fail("\"{}\" means {} runs, and one is wanted; to see them: tearless runs {}{}", fmt::join(words, " "), runs.size(),
       shell_words(words), workspace_option(store.root()));
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
  const fs::path own = sweep.grid_file;
  if (!own.is_absolute()) return own == grid_file.filename();  // of a copy of results alone
  return own.lexically_normal() == fs::absolute(grid_file).lexically_normal();
}

}  // namespace tearless::harness
