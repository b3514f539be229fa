// `tearless diff RUN RUN`, `diff SWEEP SWEEP`: the settings and scores in which two runs or sweeps differ.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/print.h"
#include "base/settings.h"
#include "base/utf8.h"
#include "harness/commands/commands.h"
#include "harness/commands/diff_sweeps.h"
#include "harness/commands/texts.h"
#include "harness/console/columns.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

struct DiffOptions {
  std::string left;
  std::string right;
  std::vector<std::string> where;
};

struct Side {
  Row row;
  std::map<std::string, json> settings;

  const std::string& id() const { return row.run.id; }
  std::string state() const { return std::string(name_of(row.result.state)); }
  /// Which versions of its training program made it.
  std::string program() const { return fmt::format("{}", fmt::join(row.result.trained_by, "; ")); }
  const std::map<std::string, double>& scores() const { return row.result.scores; }
};

Side side_of(const Globals& globals, const std::string& word) {
  std::unique_ptr<const Store> store = require_store(globals);
  const Selection run{.sweeps = {}, .runs = {one_run(*store, {word})}, .narrowed = {}};
  Row row = std::move(selected_rows(std::move(store), run, Duplicates::kNewest, Read::kResults).rows.front());
  auto settings = parse_toml_settings(row.run.settings, "run " + row.run.id).values;
  return {std::move(row), std::move(settings)};
}

/// The keys whose values differ or that only one map has.
template <class Value>
std::vector<std::string> differing(const std::map<std::string, Value>& left,
                                   const std::map<std::string, Value>& right) {
  std::set<std::string> keys;
  for (const auto& [key, value] : left) keys.insert(key);
  for (const auto& [key, value] : right) keys.insert(key);
  std::vector<std::string> different;
  for (const std::string& key : keys) {
    const auto l = left.find(key);
    const auto r = right.find(key);
    if (l == left.end() || r == right.end() || l->second != r->second) different.push_back(key);
  }
  return different;
}

std::string setting_text(const Side& side, const std::string& key) {
  const auto it = side.settings.find(key);
  return it == side.settings.end() ? "–" : toml_value(it->second);
}

std::string score_text(const Side& side, const std::string& key) {
  const auto it = side.scores().find(key);
  return it == side.scores().end() ? "–" : fmt::format("{:.6g}", it->second);
}

std::string difference_text(const Side& left, const Side& right, const std::string& key) {
  if (!left.scores().contains(key) || !right.scores().contains(key)) return "";
  return fmt::format("{:+.4g}", right.scores().at(key) - left.scores().at(key));
}

std::string text_of(const Side& left, const Side& right) {
  std::vector<std::vector<std::string>> lines = {{"", left.id(), right.id(), ""},
                                                 {"state", left.state(), right.state(), ""}};
  for (const std::string& key : differing(left.settings, right.settings)) {
    lines.push_back({key, setting_text(left, key), setting_text(right, key), ""});
  }
  if (lines.size() == 2) lines.push_back({"settings", "the same", "the same", ""});
  if (left.program() != right.program()) lines.push_back({"trained by", left.program(), right.program(), ""});
  for (const std::string& key : differing(left.scores(), right.scores())) {
    lines.push_back({key, score_text(left, key), score_text(right, key), difference_text(left, right, key)});
  }
  return text_of_columns(std::move(lines));
}

json diff_json(const Side& left, const Side& right) {
  const auto pair = [](const auto& l, const auto& r, const std::string& key) {
    return json::array({l.contains(key) ? json(l.at(key)) : json(), r.contains(key) ? json(r.at(key)) : json()});
  };
  json out = {{"runs", {left.id(), right.id()}},
              {"states", {left.state(), right.state()}},
              {"trained_by", {left.program(), right.program()}},
              {"settings", json::object()},
              {"scores", json::object()}};
  for (const std::string& key : differing(left.settings, right.settings)) {
    out["settings"][key] = pair(left.settings, right.settings, key);
  }
  for (const std::string& key : differing(left.scores(), right.scores())) {
    out["scores"][key] = pair(left.scores(), right.scores(), key);
  }
  return out;
}

// Nullopt unless the word means one whole sweep.
std::optional<std::string> sweep_meant(const Store& store, const std::string& word) {
  const Selection chosen = select(store, {word});
  return chosen.sweeps.size() == 1 && chosen.runs.empty() ? std::optional(chosen.sweeps.front()) : std::nullopt;
}

}  // namespace

std::string differences_of(const std::string& left_word, const std::string& right_word,
                           const std::vector<std::string>& where, const Globals& globals) {
  std::unique_ptr<const Store> store = require_store(globals);
  const std::optional<std::string> before = sweep_meant(*store, left_word), after = sweep_meant(*store, right_word);
  if (before && after) return differences_of_sweeps(std::move(store), *before, *after, where, globals);
  if (!where.empty()) fail("--where is of two sweeps, and {} and {} are runs", left_word, right_word);
  store.reset();
  const Side left = side_of(globals, left_word), right = side_of(globals, right_word);
  return globals.json ? json_text(diff_json(left, right)) : text_of(left, right);
}

Action command_diff(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<DiffOptions>();
  app.add_option("left", options->left,
                 "a run: its id or the beginning of it, its place, or another word that means one run; or a sweep")
      ->required();
  app.add_option("right", options->right, "the run, or the sweep, to compare it with")->required();
  app.add_option("--where", options->where,
                 "AXIS=LABEL: only these runs of two sweeps; may be repeated. An axis that only one of the sweeps has "
                 "needs it")
      ->take_all();
  return [options, &globals] {
    fmt::print("{}", differences_of(options->left, options->right, options->where, globals));
    return kOk;
  };
}

}  // namespace tearless::harness
