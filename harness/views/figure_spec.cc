#include "harness/views/figure_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/nearest.h"
#include "base/pattern.h"
#include "base/table_reader.h"
#include "base/words.h"
#include "harness/grid/labels.h"
#include "harness/views/claim_spec.h"
#include "harness/views/layout.h"
#include "harness/views/reading.h"
#include "harness/views/views.h"

namespace tearless::harness {
namespace {

using X = FigureSpec::X;

// In the order of FigureSpec::Kind.
constexpr std::array<FigureKind, 2> kKinds = {
    {{"lines", "Lines", "bands", /*is_over_labels=*/false}, {"bars", "Bars", "error bars", /*is_over_labels=*/true}}};

void load_kind(TableReader& reader, FigureSpec& spec) {
  std::vector<std::string> words;
  for (const FigureKind& kind : kKinds) words.emplace_back(kind.word);
  spec.kind = static_cast<FigureSpec::Kind>(reader.choice("kind", words, 0));
}

// --- x ---------------------------------------------------------------------------------------------------------------

void load_x(TableReader& reader, const Grid& grid, FigureSpec& spec) {
  const std::string word = reader.text("x").value_or("updates");
  const auto axis = std::ranges::find(grid.axes, word, &Axis::name);
  if (axis != grid.axes.end()) {
    spec.x = X::kAxis;
    spec.axis = static_cast<size_t>(axis - grid.axes.begin());
  } else if (word == "updates") {
    spec.x = X::kUpdates;
  } else if (word == "hours") {
    spec.x = X::kHours;
  } else if (word == "layer") {
    spec.x = X::kLayer;
  } else {
    spec.x = X::kMetric;
    spec.metric = word;
    spec.metrics.push_back({word, "x", reader.location("x")});
  }
  const FigureKind& kind = kind_of(spec.kind);
  if (spec.x == X::kAxis && axis->absent && !kind.is_over_labels) {  // what has no label has no place
    const bool has_own = spec.where.labels.contains(axis->name);
    std::set<std::string>& labels = spec.where.labels[axis->name];
    for (size_t i = 0; !has_own && i < axis->points.size(); ++i) labels.insert(axis->points[i].label);
    labels.erase(axis->points[*axis->absent].label);
  }
  if (!kind.is_over_labels) return;
  if (spec.x != X::kAxis) {
    std::vector<std::string> axes;
    for (const Axis& one : grid.axes) axes.push_back(one.name);
    fail("{}: kind = \"{}\": x must be an axis of the grid, and {} is none{}; there are: {}", reader.location("x"),
         kind.word, word, did_you_mean(word, axes), fmt::join(axes, ", "));
  }
  for (uint32_t i = 0; i < axis->points.size(); ++i) {
    if (spec.where.has(axis->name, axis->points[i].label)) spec.labels.push_back(i);
  }
  if (spec.labels.size() < 2) {
    fail("{}: kind = \"{}\": x = \"{}\" has one label, and nothing stands beside it; choose an axis with several",
         reader.location("x"), kind.word, axis->name);
  }
}

/// The labels of the axis must be numbers, but for those that `where` leaves out.
void require_numbers(const TableReader& reader, const Grid& grid, const FigureSpec& spec) {
  const Axis& axis = grid.axes[spec.axis];
  std::map<double, std::string> labels;
  for (size_t i = 0; i < axis.points.size(); ++i) {
    const std::string& label = axis.points[i].label;
    if (i == axis.absent || !spec.where.has(axis.name, label)) continue;
    const std::optional<double> number = number_of_label(label);
    if (!number) {
      fail(
          "{}: x = \"{}\": its label \"{}\" is not a number; give the points labels that are, leave it out by where, "
          "or "
          "draw kind = \"bars\"",
          reader.location("x"), axis.name, label);
    }
    if (spec.log_x && *number <= 0)
      fail("{}: log: the label \"{}\" of {} has no logarithm; leave it out by where", reader.location("log"), label,
           axis.name);
    const auto [other, is_new] = labels.emplace(*number, label);
    if (!is_new)
      fail("{}: x = \"{}\": its labels \"{}\" and \"{}\" are one number", reader.location("x"), axis.name,
           other->second, label);
  }
}

// --- y ---------------------------------------------------------------------------------------------------------------

void load_y(TableReader& reader, FigureSpec& spec) {
  spec.y = reader.texts("y");
  const std::string location = reader.location("y");
  if (spec.y.empty()) {
    fail("{}: a figure needs y = \"…\", {}", reader.location(),
         is_of_metrics(spec.x) ? "a metric or gradient_norms" : "a score");
  }
  for (const std::string& name : spec.y) {
    if (std::ranges::count(spec.y, name) > 1) fail("{}: y has {} twice", location, name);
    if (name == spec.metric) fail("{}: x and y are both {}", location, name);
    if (is_pattern(name) && spec.x != X::kLayer) {
      fail("{}: y = \"{}\": a * stands for the layer, and x is not \"layer\"; name each y by itself", location, name);
    }
    (is_of_metrics(spec.x) ? spec.metrics : spec.named).push_back({name, "y", location});
  }
  if (spec.x == X::kLayer && std::ranges::none_of(spec.y, is_pattern))
    fail("{}: with x = \"layer\" y has a * for the number of the layer, as in \"g.encoder.*.ffn\"", location);
  for (const std::string& name : spec.y) {
    if (std::ranges::count(name, '*') > 1)
      fail("{}: y = \"{}\" has more than one *, which stands for the layer", location, name);
  }
}

// --- lines and panels ------------------------------------------------------------------------------------------------

/// Takes a word that is no axis out of the names of a key.
std::vector<size_t> axes_without(TableReader& reader, const std::string& key, const std::string& word, const Grid& grid,
                                 bool& has_word) {
  std::vector<size_t> axes;
  for (const std::string& name : reader.texts(key)) {
    if (name == word && std::ranges::find(grid.axes, word, &Axis::name) == grid.axes.end()) {
      has_word = true;
    } else {
      axes.push_back(grid.axis_index(name, reader.location(key)));
    }
  }
  return axes;
}

/// Without `lines` they are all axes that stand nowhere else.
void place_axes(TableReader& reader, const Grid& grid, FigureSpec& spec) {
  spec.lines = axes_without(reader, "lines", "seed", grid, spec.line_for_each_run);
  spec.panels = axes_without(reader, "panels", "y", grid, spec.panel_for_each_y);
  std::map<size_t, std::string> stands;
  const auto mark = [&](const std::vector<size_t>& axes, const std::string& key) {
    for (const size_t axis : axes) {
      const auto [other, is_new] = stands.emplace(axis, key);
      if (!is_new) {
        fail("{}: the axis {} is in both {} and {}; it can be in one of them, once", reader.location(),
             grid.axes[axis].name, other->second, key);
      }
    }
  };
  if (spec.x == X::kAxis) mark({spec.axis}, "x");
  mark(spec.lines, "lines");
  mark(spec.panels, "panels");
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    if (stands.contains(axis) || leaves_one_point(grid, spec.where, axis)) continue;
    if (reader.has("lines") && !(spec.lines.empty() && spec.line_for_each_run)) {
      fail(
          "{}: the axis {} is neither x nor in lines or panels: its runs would be one line; add it, or choose one of "
          "its labels by where",
          reader.location(), grid.axes[axis].name);
    }
    spec.lines.push_back(axis);
  }
}

// --- what is drawn ---------------------------------------------------------------------------------------------------

void load_log(TableReader& reader, FigureSpec& spec) {
  for (const std::string& axis : reader.texts("log")) {
    if (axis != "x" && axis != "y") fail("{}: log must be \"x\", \"y\" or both in a list", reader.location("log"));
    (axis == "x" ? spec.log_x : spec.log_y) = true;
  }
  if (spec.log_x && kind_of(spec.kind).is_over_labels) {
    fail("{}: log: kind = \"{}\" has labels side by side on its axis of x, and no logarithms", reader.location("log"),
         kind_of(spec.kind).word);
  }
}

constexpr double kMmOfAPoint = 25.4 / 72.27;

/// In mm, of a number with its unit; nullopt if it is none.
std::optional<double> length_of(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"mm", 1}, {"cm", 10}, {"in", 25.4}, {"pt", kMmOfAPoint}}};
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  for (const auto& [name, mm] : kUnits) {
    if (trimmed(unit) == name) return number * mm;
  }
  return std::nullopt;
}

/// "column", "page", or a length.
void load_width(TableReader& reader, FigureSpec& spec) {
  constexpr double kAsAColumn = 129, kLeast = 20, kMost = 1000;  // mm: up to the first it is laid out as a column
  const toml::node* node = reader.any("width");
  const std::string text = node ? node->value<std::string>().value_or("") : "column";
  spec.own_width = length_of(text);
  const bool is_wide = spec.own_width ? *spec.own_width > kAsAColumn : text == "page";
  spec.width = is_wide ? TableSpec::Width::kPage : TableSpec::Width::kColumn;
  if (spec.own_width ? !(*spec.own_width >= kLeast && *spec.own_width <= kMost) : text != "column" && !is_wide) {
    fail(
        "{}: width must be \"column\", \"page\", or a number from {} to {} mm with its unit (mm, cm, in, pt), as in "
        "\"8.5cm\"",
        reader.location("width"), kLeast, kMost);
  }
}

void load_font_size(TableReader& reader, FigureSpec& spec) {
  constexpr double kLeast = 4, kMost = 24;
  const toml::node* node = reader.any("font_size");
  if (!node) return;
  const std::optional<double> mm = length_of(node->value<std::string>().value_or(""));
  spec.font_size = mm.value_or(0) / kMmOfAPoint;
  if (!(*spec.font_size >= kLeast && *spec.font_size <= kMost)) {
    fail("{}: font_size must be a number from {} to {} pt with its unit, as in \"7pt\"", reader.location("font_size"),
         kLeast, kMost);
  }
}

void note_idle_keys(const TableReader& reader, const Grid& grid, FigureSpec& spec) {
  const auto note = [&](const char* key, const std::string& because) {
    if (reader.has(key))
      spec.idle.push_back({.key = fmt::format("[[figure]] {} ({})", key, reader.location(key)), .because = because});
  };
  if (spec.line_for_each_run || grid.seeds.size() == 1) {
    for (const char* key : {"band", "fewer_seeds"})
      note(key, spec.line_for_each_run ? "lines = \"seed\"" : "a single seed");
  }
  if (spec.panels.empty()) note("y_axes", "");
}

bool is_word(const std::string& name) { return is_plain_name(name) && std::ranges::count(name, '.') == 0; }

/// Where the label that a node names stands on the axis of x.
double place_of_label(const toml::node& node, const TableReader& reader, const Grid& grid, const FigureSpec& spec) {
  const Axis& axis = grid.axes[spec.axis];
  const std::vector<uint32_t> named =
      points_named(axis, labels_in(node, "points", reader.file()), reader.location(node) + ": points");
  const auto place = named.size() == 1 ? std::ranges::find(spec.labels, named.front()) : spec.labels.end();
  if (place == spec.labels.end())
    fail("{}: points: a label of {} that the figure shows is wanted", reader.location(node), axis.name);
  return static_cast<double>(place - spec.labels.begin()) + 1;
}

/// Of a kind over labels `label, y`, otherwise `x, y`.
Curve points_in(const toml::array& list, const TableReader& reader, const Grid& grid, const FigureSpec& spec) {
  const bool is_over_labels = kind_of(spec.kind).is_over_labels;
  const char* what = is_over_labels ? "[label, y], a label of x and a number" : "[x, y], two numbers";
  Curve points;
  for (const toml::node& node : list) {
    const toml::array* pair = node.as_array();
    const bool is_pair =
        pair && pair->size() == 2 && (is_over_labels || pair->get(0)->is_number()) && pair->get(1)->is_number();
    if (!is_pair) fail("{}: a published point is {}", reader.location(node), what);
    CurvePoint& point = points.emplace_back(CurvePoint{0, *pair->get(1)->value<double>()});
    point.x = is_over_labels ? place_of_label(*pair->get(0), reader, grid, spec) : *pair->get(0)->value<double>();
    if (!std::isfinite(point.x) || !std::isfinite(point.y))
      fail("{}: a published point is {}", reader.location(node), what);
  }
  std::ranges::stable_sort(points, {}, &CurvePoint::x);
  if (std::ranges::adjacent_find(points, {}, &CurvePoint::x) != points.end())
    fail("{}: two published points have the same x", reader.location(list));
  return points;
}

/// [[figure.published]]: source, points = [[x, y], …], and whose numbers they are: line = { axis = label }, or label.
void load_published(const toml::table& table, const std::string& file, const Grid& grid, FigureSpec& spec) {
  TableReader reader(table, "[[figure.published]]", file);
  FigureSpec::PublishedLine line;
  line.source = name_at(reader, "source").value_or(Name());
  if (line.source.text.empty())
    fail("{}: published needs its source, as in source = \"…, Figure 1\"", reader.location());
  line.label = reader.text("label").value_or("");
  line.y = reader.text("y").value_or(spec.y.front());
  if (std::ranges::find(spec.y, line.y) == spec.y.end()) {
    fail("{}: y: the figure does not draw {}{}; its y is {}", reader.location("y"), line.y,
         did_you_mean(line.y, spec.y), fmt::join(spec.y, ", "));
  }
  const toml::array* points = reader.list("points");
  if (!points || points->empty())
    fail("{}: published needs points = [[{}, y], …]", reader.location(),
         kind_of(spec.kind).is_over_labels ? "label" : "x");
  line.points = points_in(*points, reader, grid, spec);
  const toml::table* labels = reader.table("line");
  reader.refuse_leftovers();
  if (!labels && line.label.empty()) {
    fail(
        "{}: published needs line = {{ axis = label }}, the line whose numbers they are, or label = \"…\" for a line "
        "of its own",
        reader.location());
  }
  std::vector<size_t> axes = line.label.empty() ? spec.lines : std::vector<size_t>();
  const size_t of_lines = axes.size();
  axes.insert(axes.end(), spec.panels.begin(), spec.panels.end());
  for (const auto& [name, node] : labels ? *labels : toml::table()) {
    const size_t axis = grid.axis_index(std::string(name.str()), reader.location("line") + ": line");
    if (std::ranges::find(axes, axis) == axes.end()) {
      fail(
          "{}: line: {} is {}", reader.location(node), grid.axes[axis].name,
          line.label.empty() ? "neither in lines nor in panels" : "not in panels, and the line has a label of its own");
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = grid.axes[axes[i]];
    const toml::node* node = labels ? labels->get(axis.name) : nullptr;
    if (!node) fail("{}: line needs a label of {}", labels ? reader.location(*labels) : reader.location(), axis.name);
    const std::vector<uint32_t> chosen =
        points_named(axis, labels_in(*node, axis.name, file), reader.location(*node) + ": line");
    if (chosen.size() != 1) fail("{}: line: one label of {} is wanted", reader.location(*node), axis.name);
    const std::string& label = axis.points[chosen.front()].label;
    if (!spec.where.has(axis.name, label))
      fail("{}: line: the figure's where leaves out {}", reader.location(*node), label);
    (i < of_lines ? line.line_at : line.panel_at).push_back(chosen.front());
  }
  spec.published.push_back(std::move(line));
}

}  // namespace

const FigureKind& kind_of(FigureSpec::Kind kind) { return kKinds.at(static_cast<size_t>(kind)); }

bool is_of_metrics(X x) { return x != X::kLayer && x != X::kAxis; }

void read_view(TableReader& reader, const Grid& grid, const std::vector<View>& others, FigureSpec& spec) {
  spec.location = reader.location();
  spec.where = read_where(reader, grid);
  load_kind(reader, spec);
  load_x(reader, grid, spec);
  load_y(reader, spec);
  place_axes(reader, grid, spec);
  if (reader.has("where") && layout_of(grid, {.rows = spec.lines, .where = spec.where}).rows.empty())
    fail("{}: where leaves no run of the grid", reader.location("where"));
  spec.band = static_cast<FigureSpec::Band>(reader.choice("band", {"none", "std", "ci95", "range"}, 1));
  constexpr int kMaxSmooth = 100000, kMaxBins = 1000;
  spec.smooth = static_cast<int>(whole_number(reader, "smooth", 1, kMaxSmooth).value_or(1));
  if (const auto bins = whole_number(reader, "bins", 1, kMaxBins)) spec.bins = static_cast<int>(*bins);
  spec.ends_at_fewer = reader.choice("fewer_seeds", {"end", "dashed"}, 0) == 0;
  for (const char* key : {"smooth", "bins", "fewer_seeds"}) {
    if (reader.has(key) && !is_of_metrics(spec.x))
      fail("{}: {} is for what runs report over updates; the points over {} stand for themselves", reader.location(key),
           key, spec.x == X::kLayer ? "layers" : "an axis");
  }
  load_log(reader, spec);
  if (spec.x == X::kAxis && !kind_of(spec.kind).is_over_labels) require_numbers(reader, grid, spec);
  spec.share_y = reader.choice("y_axes", {"shared", "own"}, 0) == 0;
  note_idle_keys(reader, grid, spec);
  load_width(reader, spec);
  load_font_size(reader, spec);
  spec.legend_inside = reader.choice("legend", {"below", "inside"}, 0) == 1;
  if (const toml::node* node = reader.any("caption_in_picture")) {
    if (!node->is_boolean())
      fail("{}: caption_in_picture must be true or false", reader.location("caption_in_picture"));
    spec.caption_in_picture = **node->as_boolean();
  }
  spec.name = reader.text("name").value_or("");
  if (reader.has("name") && !is_word(spec.name)) {
    fail("{}: name = \"{}\" must be a word of letters, digits, - and _: the figure's file is called so",
         reader.location("name"), spec.name);
  }
  for (const View& other : others) {
    const auto* figure = std::get_if<FigureSpec>(&other.spec);
    if (figure && !spec.name.empty() && figure->name == spec.name)
      fail("{}: two figures have the name {}; each needs its own", reader.location("name"), spec.name);
  }
  for (const toml::table* published : reader.tables("published")) load_published(*published, reader.file(), grid, spec);
}

}  // namespace tearless::harness
