#include "harness/views/claim_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "base/numbers.h"
#include "base/pattern.h"
#include "base/spelling.h"
#include "base/table_reader.h"
#include "base/words.h"
#include "harness/grid/labels.h"
#include "harness/views/lines.h"
#include "harness/views/reading.h"
#include "harness/views/views.h"
#include "harness/views/within.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxWords = 12;  // in one sentence

// --- the table -------------------------------------------------------------------------------------------------------

/// The rows and columns of the claim's table.
struct TableLines {
  const Grid& grid;
  const View& view;
  Lines rows = {}, columns = {};
  std::vector<std::string> axes = {};  // of the rows, then of the columns

  TableLines(const Grid& of, const View& table) : grid(of), view(table) {
    const TableSpec& spec = view.table();
    const Layout layout = layout_of(grid, spec.arrangement);
    rows = with_added(lines_of(grid, spec.arrangement.rows, layout.rows), spec.added_rows);
    columns = with_added(lines_of(grid, spec.arrangement.columns, layout.columns), spec.added_columns);
    axes = rows.axes;
    axes.insert(axes.end(), columns.axes.begin(), columns.axes.end());
  }

  bool has_axis(const std::string& name) const { return std::ranges::find(axes, name) != axes.end(); }

  std::vector<std::string> labels_on(const std::string& axis) const {
    std::vector<std::string> labels;
    std::set<std::string_view> seen;
    for (const Lines* of : {&rows, &columns}) {
      for (const Lines::Line& line : of->lines) {
        const std::string* label = of->label_on(axis, line);
        if (label && seen.insert(*label).second) labels.push_back(*label);
      }
    }
    return labels;
  }

  /// The cells have labels on axes of both, or of one.
  bool has(const CellLabels& cell) const {
    return std::ranges::all_of(std::array{&rows, &columns}, [&](const Lines* of) {
      return std::ranges::any_of(of->lines, [&](const Lines::Line& line) {
        return std::ranges::all_of(cell, [&](const auto& entry) {
          const std::string* label = of->label_on(entry.first, line);
          return !label || *label == entry.second;
        });
      });
    });
  }

 private:
  static Lines with_added(Lines lines, const std::vector<TableSpec::AddedLine>& added) {
    for (const TableSpec::AddedLine& one : added) {
      Lines::Line& line = lines.lines.emplace_back(Lines::Line{{}, /*is_added=*/true});
      for (const Name& label : one.labels) line.labels.push_back(label.text);
    }
    return lines;
  }
};

const View& table_named(const std::optional<std::string>& caption, const TableReader& reader,
                        const std::vector<View>& views) {
  std::vector<std::string> captions;
  for (const View& view : views) {
    if (!std::holds_alternative<TableSpec>(view.spec)) continue;
    if (!caption || view.title.text == *caption) return view;
    captions.push_back(view.title.text);
  }
  fail("{}: the grid has no table with the caption \"{}\"{}; it has: {}", reader.location("table"),
       caption.value_or(""), did_you_mean(caption.value_or(""), captions), some_of(captions, kMaxWords));
}

std::string text_of(const CellLabels& cell) {
  std::vector<std::string> labels;
  for (const auto& [axis, label] : cell) labels.push_back(label);
  return fmt::format("{}", fmt::join(labels, ", "));
}

// --- cells -----------------------------------------------------------------------------------------------------------

/// Reads what names the cells of one key of a claim.
class CellReader {
 public:
  CellReader(const TableLines& lines, const TableReader& reader, std::string key)
      : lines_(lines), reader_(reader), key_(std::move(key)) {}

  /// A label, a list of labels, or { axis = label }.
  CellLabels cell(const toml::node& node) const {
    CellLabels cell;
    if (const toml::table* table = node.as_table()) {
      for (const auto& [name, value] : *table) cell.insert(label_on(std::string(name.str()), value));
    } else {
      for (const std::string& word : labels_in(node, key_, reader_.file())) {
        const auto label = label_called(word, node);
        if (const auto [own, is_new] = cell.insert(label); !is_new) {
          fail("{}: \"{}\" and \"{}\" are both labels of {}; a cell has one of each axis", at(node), own->second,
               label.second, label.first);
        }
      }
    }
    if (!lines_.has(cell)) fail("{}: the table has no cell with the labels {}", at(node), text_of(cell));
    return cell;
  }

  /// A list of these, of which one may stand by itself where one is enough. With `scores` of their own two may have the
  /// same labels.
  std::vector<CellLabels> cells(const toml::node& node, const ClaimKind& kind,
                                const std::vector<std::string>& scores) const {
    std::vector<CellLabels> all;
    const toml::array* list = kind.max_cells > 1 ? node.as_array() : nullptr;
    if (!list) {
      all.push_back(cell(node));
    } else {
      for (const toml::node& one : *list) all.push_back(cell(one));
    }
    const auto score_of = [&](size_t cell) { return cell < scores.size() ? scores[cell] : ""; };
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (all[i] == all[j] && score_of(i) == score_of(j)) fail("{} has the cell {} twice", at(node), text_of(all[i]));
      }
    }
    if (all.size() < kind.min_cells || all.size() > kind.max_cells) {
      fail("{} needs {}, each a label or labels of a row or a column, and has {}", at(node),
           kind.min_cells == kind.max_cells ? counted(static_cast<int64_t>(kind.min_cells), "cell")
                                            : fmt::format("a list of {} or more cells", kind.min_cells),
           all.size());
    }
    return all;
  }

  /// { axis = label or [labels] }, or true or false: at all places or at none.
  PlaceFilter places(const toml::node& node) const {
    if (const auto all = node.value_exact<bool>()) return {.all = *all};
    const toml::table* table = node.as_table();
    if (!table) fail("{} must be true, false or places, as in {{ corpus = [\"a\", \"b\"] }}", at(node));
    if (table->empty()) fail("{} names no place; write places, as in {{ corpus = [\"a\", \"b\"] }}", at(node));
    PlaceFilter filter;
    for (const auto& [name, value] : *table) {
      const std::string axis(name.str());
      require_axis(axis, value);
      const std::vector<std::string> labels = labels_in(value, axis, reader_.file());
      if (labels.empty()) fail("{}: {} names no label; write one or more, or leave it out", at(value), axis);
      for (const std::string& label : labels) filter.where.labels[axis].insert(known_label(axis, label, value));
    }
    return filter;
  }

  void require_axis(const std::string& axis, const toml::node& node) const {
    if (lines_.has_axis(axis)) return;
    fail("{}: the table \"{}\" has no axis {} in its rows or columns{}; it has: {}", at(node), lines_.view.title.text,
         axis, did_you_mean(axis, lines_.axes), fmt::join(lines_.axes, ", "));
  }

 private:
  using Entry = std::pair<std::string, std::string>;  // axis, label

  std::string at(const toml::node& node) const { return fmt::format("{}: {}", reader_.location(node), key_); }

  /// As the table has it.
  std::string known_label(const std::string& axis, const std::string& label, const toml::node& node) const {
    const std::vector<std::string> known = lines_.labels_on(axis);
    if (const auto found = find_spelled(known, label); found != known.end()) return *found;
    fail("{}: the table has no \"{}\" on its axis {}{}; it has: {}", at(node), label, axis, did_you_mean(label, known),
         some_of(known, kMaxWords));
  }

  Entry label_on(const std::string& axis, const toml::node& node) const {
    require_axis(axis, node);
    const std::vector<std::string> labels = labels_in(node, axis, reader_.file());
    if (labels.size() != 1) fail("{}: {} needs one label here, and has {}", at(node), axis, labels.size());
    return {axis, known_label(axis, labels.front(), node)};
  }

  /// By its label or its name in print, whichever axis it is of.
  Entry label_called(const std::string& word, const toml::node& node) const {
    std::vector<Entry> found;
    std::vector<std::string> known;
    for (const std::string& axis : lines_.axes) {
      for (const std::string& label : lines_.labels_on(axis)) {
        const std::string in_print = name_of(lines_.grid.names, axis, label).text;
        if (is_same_value(label, word) || in_print == word) found.emplace_back(axis, label);
        known.push_back(label);
        if (in_print != label) known.push_back(in_print);
      }
    }
    if (found.size() == 1) return found.front();
    if (found.size() > 1) {
      fail("{}: \"{}\" is a label of {} and of {}; write {{ axis = label }}", at(node), word, found[0].first,
           found[1].first);
    }
    fail("{}: the table \"{}\" has no row or column \"{}\"{}; it has: {}", at(node), lines_.view.title.text, word,
         did_you_mean(word, known), some_of(known, kMaxWords));
  }

  const TableLines& lines_;
  const TableReader& reader_;
  std::string key_;
};

std::set<std::string> axes_of(const CellLabels& cell) {
  std::set<std::string> axes;
  for (const auto& [axis, label] : cell) axes.insert(axis);
  return axes;
}

/// What one cell fixes and another leaves open would be several cells at each place.
void require_same_axes(const ClaimSpec& spec, const std::string& location) {
  for (const CellLabels& cell : spec.cells) {
    for (const CellLabels& other : spec.cells) {
      for (const std::string& axis : axes_of(other)) {
        if (cell.contains(axis)) continue;
        fail("{}: {}: \"{}\" names several cells, one for each label of {}, which \"{}\" fixes; add its label to both",
             location, spec.kind->name, text_of(cell), axis, text_of(other));
      }
    }
  }
}

void require_open(const PlaceFilter& filter, const ClaimSpec& spec, const std::string& key, const TableReader& reader) {
  for (const auto& [axis, labels] : filter.where.labels) {
    if (!spec.cells.front().contains(axis) && axis != spec.over) continue;
    fail("{}: {}: the claim's cells have a label of {} themselves; its places are those of the other axes",
         reader.location(key), key, axis);
  }
}

// --- scores and limits -----------------------------------------------------------------------------------------------

/// UserError if it is no name of one score that the table shows.
void require_shown(const std::string& score, const std::string& location, const TableSpec& table) {
  if (is_pattern(score)) fail("{}: a claim is about one score, and {} may be several", location, score);
  if (table.scores.empty() || std::ranges::any_of(table.scores, is_pattern)) return;  // the runs decide
  std::vector<std::string> known = table.scores;
  for (const TableSpec::AddedLine& column : table.added_columns) known.push_back(column.score);
  if (std::ranges::find(known, score) == known.end()) {
    fail("{}: the table does not show {}{}; its scores are {}", location, score, did_you_mean(score, known),
         fmt::join(table.scores, ", "));
  }
}

/// `score`, of all cells, or `scores`, one for each of the cells that the claim compares with each other.
void load_score(TableReader& reader, const TableSpec& table, ClaimSpec& spec) {
  spec.score = reader.text("score").value_or("");
  spec.scores = reader.texts("scores");
  const std::string key = reader.has("scores") ? "scores" : "score", location = reader.location(key) + ": " + key;
  if (!reader.has(key)) return;
  if (reader.has("score") && reader.has("scores"))
    fail("{}: write either score or scores, not both", reader.location(key));
  const bool takes_several = spec.kind->min_cells >= 2 && !(spec.kind->keys & ClaimKind::kCurve);
  if (key == "scores" && !takes_several)
    fail("{}: {} is about one score; write score = \"…\"", location, spec.kind->name);
  for (const std::string& score : key == "scores" ? spec.scores : std::vector{spec.score}) {
    require_shown(score, location, table);
    spec.named.push_back({score, "claim." + key, reader.location(key)});
  }
}

/// The scores that the claim is about, as far as the grid file says it: several where columns have scores of their own.
std::vector<std::string> scores_of(const ClaimSpec& spec, const TableSpec& table) {
  if (!spec.scores.empty()) return spec.scores;
  if (!spec.score.empty()) return {spec.score};
  std::vector<std::string> scores;
  for (const auto& [label, own] : table.scores_of_label) {
    if (!own.empty()) scores.push_back(own.front());
  }
  if (scores.empty() && !table.scores.empty()) scores.push_back(table.scores.front());
  if (std::ranges::any_of(scores, is_pattern)) scores.clear();
  return scores;
}

/// Cells of columns whose scores differ have nothing in common to compare.
void require_one_score(const ClaimSpec& spec, const TableSpec& table, const Grid& grid, const std::string& location) {
  if (!table.scores_axis || !spec.score.empty() || !spec.scores.empty()) return;
  const std::string& axis = grid.axes[*table.scores_axis].name;
  const std::string* first = nullptr;
  for (const CellLabels& cell : spec.cells) {
    const auto label = cell.find(axis);
    const auto own = label == cell.end() ? table.scores_of_label.end() : table.scores_of_label.find(label->second);
    if (own == table.scores_of_label.end() || own->second.empty()) continue;
    if (first && *first != own->second.front()) {
      fail("{}: {}: {} and {} are different scores; to compare them write scores = […], one for each cell", location,
           spec.kind->name, *first, own->second.front());
    }
    first = &own->second.front();
  }
}

/// "0.3 BLEU", or "2 %" of the mean of the second.
Within within_at(TableReader& reader, const char* key, const TableLines& lines, const ClaimSpec& spec) {
  const std::vector<std::string> scores = scores_of(spec, lines.view.table());
  const std::string example = scores.empty() ? "bleu" : last_word(scores.front());
  const toml::node* node = reader.any(key);
  const std::string at = fmt::format("{}: {}", reader.location(key), key);
  if (!node) {
    fail("{}: {} needs its limit and the limit's unit, as in {} = \"0.3 {}\"", reader.location(), spec.kind->name, key,
         example);
  }
  Within within = read_within(*node, at, example, "the second", key);
  if (within.is_percent()) return within;
  if (scores.empty()) fail("{}: the runs decide which score the table shows; write the claim's score = \"…\"", at);
  for (const std::string& score : scores) {
    if (!is_unit_of(within.unit, score, lines.grid.names))
      fail("{}: {} is not the unit of the claim's score, {}; write \"{} {}\", or a percentage", at, within.unit, score,
           within.limit, last_word(score));
  }
  return within;
}

/// Whether the claim is about differences, and has no limit of its own.
bool takes_matters(const ClaimKind& kind) {
  return kind.has_scale && !(kind.keys & (ClaimKind::kWithin | ClaimKind::kCurve));
}

void load_between(TableReader& reader, ClaimSpec& spec) {
  const toml::array* list = reader.list("between");
  const auto number = [&](size_t i) {
    const toml::node* node = list && list->size() == 2 ? list->get(i) : nullptr;
    return node && node->is_number() ? node->value<double>().value_or(0) : 0;
  };
  spec.limits.between = {number(0), number(1)};
  const auto& [low, high] = spec.limits.between;
  if (!(low >= 0 && high > low && std::isfinite(high))) {
    fail("{}: a ratio needs between = [low, high], two numbers of which the first is smaller, as in [0.9, 1.0]",
         reader.location("between"));
  }
}

void load_over(TableReader& reader, const TableLines& lines, const CellReader& cells, ClaimSpec& spec) {
  spec.over = reader.text("over").value_or("");
  const std::string location = reader.location("over");
  if (spec.over.empty()) fail("{}: {} needs over = \"…\", an axis of numbers", location, spec.kind->name);
  cells.require_axis(spec.over, *reader.any("over"));
  if (spec.cells.front().contains(spec.over))
    fail("{}: over: {} fixes a label of {}, over which the line is drawn", location, spec.kind->name, spec.over);
  std::set<double> numbers;
  for (const std::string& label : lines.labels_on(spec.over)) {
    const std::optional<double> number = number_of_label(label);
    if (!number) fail("{}: over: the label \"{}\" of {} is not a number", location, label, spec.over);
    numbers.insert(*number);
  }
  if (numbers.size() < spec.kind->needed)
    fail("{}: over: {} has {}, and a line needs {} or more", location, spec.over,
         counted(static_cast<int64_t>(numbers.size()), "number"), spec.kind->needed);
}

void load_keys(TableReader& reader, const TableLines& lines, const CellReader& cells, ClaimSpec& spec) {
  const unsigned keys = spec.kind->keys;
  if (keys & ClaimKind::kWithin) {
    const Within within = within_at(reader, "within", lines, spec);
    spec.limits.within = within.limit;
    spec.limits.is_percent = within.is_percent();
  }
  if (reader.has("matters")) {
    if (!takes_matters(*spec.kind))
      fail("{}: matters: {} {}; leave it out", reader.location("matters"), spec.kind->name,
           keys & ClaimKind::kWithin ? "has its limit in within" : "is about no difference of scores");
    spec.matters = within_at(reader, "matters", lines, spec);
  }
  if (keys & ClaimKind::kBetween) load_between(reader, spec);
  if (keys & ClaimKind::kOver) load_over(reader, lines, cells, spec);
  if (keys & ClaimKind::kDirection) {
    if (!reader.has("direction")) fail("{}: a slope needs direction = \"up\" or \"down\"", reader.location());
    spec.limits.falls = reader.choice("direction", {"up", "down"}, 0) == 1;
  }
  if (keys & ClaimKind::kR2) {
    spec.limits.r2 = reader.number("r2").value_or(0);
    if (!(spec.limits.r2 > 0 && spec.limits.r2 <= 1))
      fail("{}: {} needs r2 above 0 and up to 1, as in r2 = 0.9", reader.location("r2"), spec.kind->name);
  }
  if (keys & ClaimKind::kThan) {
    const std::optional<double> than = reader.number("than");
    if (!than) fail("{}: {} needs than = a number", reader.location(), spec.kind->name);
    spec.limits.than = *than;
  }
  if (keys & ClaimKind::kCurve) {
    spec.curve = reader.text("curve").value_or("");
    const std::optional<double> from = reader.number("from");
    if (spec.curve.empty() || !from || is_pattern(spec.curve)) {
      fail("{}: {} needs curve = \"…\", a metric, and from = the update from which on it is so", reader.location(),
           spec.kind->name);
    }
    spec.curve_location = reader.location("curve");
    spec.limits.from = *from;
    if (!reader.has("best_is"))
      fail("{}: {} needs best_is = \"highest\" or \"lowest\"", reader.location(), spec.kind->name);
    spec.lowest_is_best = reader.choice("best_is", {"highest", "lowest"}, 0) == 1;
  }
  if (keys & ClaimKind::kOf) {
    const toml::array* others = reader.list("of");
    spec.among_all = !others;
    for (const toml::node& other : others ? *others : toml::array())
      spec.cells.push_back(CellReader(lines, reader, "of").cell(other));
    std::erase_if(spec.cells,
                  [&](const CellLabels& cell) { return &cell != &spec.cells.front() && cell == spec.cells[0]; });
    if (others && spec.cells.size() < spec.kind->needed)
      fail("{}: of: {} is compared with no other cell; name one or more, or leave it out for all",
           reader.location("of"), spec.kind->name);
  }
}

/// Reads which of the kinds the claim is.
const ClaimKind& load_kind(TableReader& reader) {
  const ClaimKind* chosen = nullptr;
  std::vector<std::string_view> names;
  for (const ClaimKind& kind : claim_kinds()) {
    names.push_back(kind.name);
    if (!reader.any(std::string(kind.name))) continue;
    if (chosen) {
      fail("{}: a claim is one sentence: it has either {} or {}, not both", reader.location(std::string(kind.name)),
           chosen->name, kind.name);
    }
    chosen = &kind;
  }
  if (!chosen)
    fail("{}: the claim says nothing of its cells; write one of: {}", reader.location(), fmt::join(names, ", "));
  return *chosen;
}

}  // namespace

std::optional<double> number_of_label(const std::string& label) {
  const auto number = number_of<double>(label);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

void read_view(TableReader& reader, const Grid& grid, const std::vector<View>& others, ClaimSpec& spec) {
  spec.name = reader.text("name").value_or("");
  spec.source = name_at(reader, "source").value_or(Name());
  const View& view = table_named(reader.text("table"), reader, others);
  spec.table = static_cast<size_t>(&view - others.data());
  const TableLines lines(grid, view);
  spec.kind = &load_kind(reader);
  load_score(reader, view.table(), spec);
  const std::string key(spec.kind->name);
  const CellReader cells(lines, reader, key);
  spec.cells = cells.cells(*reader.any(key), *spec.kind, spec.scores);
  if (reader.has("scores") && spec.scores.size() != spec.cells.size()) {
    fail("{}: scores: {} for {}; each cell has one", reader.location("scores"),
         counted(std::ssize(spec.scores), "score"), counted(std::ssize(spec.cells), "cell"));
  }
  load_keys(reader, lines, cells, spec);
  require_same_axes(spec, reader.location(key));
  require_one_score(spec, view.table(), grid, reader.location(key));
  for (const auto& [name, filter] : {std::pair("where", &spec.where), std::pair("not_claimed", &spec.not_claimed),
                                     std::pair("paired", &spec.paired)}) {
    const toml::node* node = reader.any(name);
    if (!node) continue;
    *filter = CellReader(lines, reader, name).places(*node);
    require_open(*filter, spec, name, reader);
    if (filter == &spec.where && !filter->all && filter->where.labels.empty()) {
      fail("{}: where = false leaves the claim no place; leave the key out, or write not_claimed = true",
           reader.location(*node));
    }
  }
}

}  // namespace tearless::harness
