#include "harness/views/added_lines.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "base/pattern.h"
#include "base/spelling.h"
#include "base/words.h"
#include "harness/grid/labels.h"
#include "harness/views/lines.h"
#include "harness/views/reading.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxShown = 12;  // in one sentence

/// The rows or the columns of the layout.
struct NamedLines : Lines {
  const char* what;  // "row"

  /// The line with these labels: one text with one axis, a list with several.
  size_t find(const toml::node& node, const std::string& key, const TableReader& reader) const {
    const std::vector<std::string> wanted = labels_in(node, key, reader.file());
    auto found = std::ranges::find(lines, wanted, &Line::labels);
    if (found == lines.end()) {
      found = std::ranges::find_if(
          lines, [&](const Line& line) { return std::ranges::equal(line.labels, wanted, is_same_value); });
    }
    if (found != lines.end()) return static_cast<size_t>(found - lines.begin());
    std::vector<std::string> known;
    for (const auto& [labels, is_added] : lines)
      known.push_back(labels.size() == 1 ? labels.front() : fmt::format("[{}]", fmt::join(labels, ", ")));
    fail("{}: {}: the table has no {} \"{}\"{}; it has: {}", reader.location(node), key, what, fmt::join(wanted, ", "),
         did_you_mean(wanted.empty() ? "" : wanted.front(), known), some_of(known, kMaxShown));
  }
};

/// A list of lines, each a text or, with several axes, a list of texts.
std::vector<size_t> lines_named(const toml::node& node, const std::string& key, const NamedLines& lines,
                                const TableReader& reader) {
  const toml::array* list = node.as_array();
  if (!list) fail("{}: {} must be a list of labels of {}s", reader.location(node), key, lines.what);
  std::vector<size_t> found;
  for (const toml::node& one : *list) found.push_back(lines.find(one, key, reader));
  return found;
}

std::vector<Name> load_labels(TableReader& reader, const NamedLines& lines) {
  const toml::node* node = reader.any("label");
  if (!node) fail("{}: a {} needs its label", reader.location(), lines.what);
  if (lines.axes.empty())
    fail("{}: a {} can be added where an axis is in {}s", reader.location(), lines.what, lines.what);
  std::vector<Name> labels;
  if (const auto* list = node->as_array()) {
    for (const toml::node& one : *list) labels.push_back(read_name(one, "label", reader.location(one)));
  } else {
    labels.push_back(read_name(*node, "label", reader.location(*node)));
  }
  if (labels.size() > lines.axes.size()) {
    fail("{}: label has {} texts where the {}s have {}", reader.location("label"), labels.size(), lines.what,
         counted(std::ssize(lines.axes), "axis"));
  }
  labels.resize(lines.axes.size());
  return labels;
}

/// `mean = true`, of all lines, or a list of some; or `difference = [A, B]`, A minus B.
void load_sum(TableReader& reader, const NamedLines& lines, TableSpec::AddedLine& added) {
  const toml::node *mean = reader.any("mean"), *difference = reader.any("difference");
  if (mean && difference) fail("{}: write either mean or difference, not both", reader.location("difference"));
  if (difference) {
    const std::vector<size_t> two = lines_named(*difference, "difference", lines, reader);
    if (two.size() != 2)
      fail("{}: difference needs two {}s, as in [A, B] for A minus B", reader.location(*difference), lines.what);
    added.sum = {{two[0], 1}, {two[1], -1}};
    added.is_difference = true;
  } else if (mean) {
    std::vector<size_t> all(lines.lines.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    const bool is_true = mean->value_exact<bool>().value_or(false);
    const std::vector<size_t> of = is_true ? all : lines_named(*mean, "mean", lines, reader);
    if (of.empty()) fail("{}: mean = [] has no {}", reader.location(*mean), lines.what);
    for (const size_t line : of) added.sum.emplace_back(line, 1 / static_cast<double>(of.size()));
  }
}

/// Two lines of the same labels could not be told apart.
void require_other_labels(const TableSpec::AddedLine& added, const std::vector<TableSpec::AddedLine>& others,
                          const NamedLines& lines, const TableReader& reader) {
  std::vector<std::string> own;
  for (const Name& label : added.labels) own.push_back(label.text);
  const bool is_taken =
      std::ranges::find(lines.lines, own, &Lines::Line::labels) != lines.lines.end() ||
      std::ranges::any_of(others, [&](const TableSpec::AddedLine& other) { return other.labels == added.labels; });
  if (is_taken)
    fail("{}: the table has a {} \"{}\" already; give this one another label", reader.location("label"), lines.what,
         fmt::join(own, ", "));
}

void load_before(TableReader& reader, const NamedLines& lines, TableSpec::AddedLine& added) {
  if (const toml::node* before = reader.any("before")) added.before = lines.find(*before, "before", reader);
}

/// Where the values of a row of published numbers may stand: in each of the layout's columns, of its first score (""),
/// or of each of its scores. Where patterns name scores, the runs decide which these are.
struct PublishedPlaces {
  using Place = std::pair<size_t, std::string>;
  std::vector<Place> of_first = {}, of_each = {};

  PublishedPlaces(const Grid& grid, const TableSpec& spec, const std::vector<Coordinates>& columns) {
    bool are_known = true;
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::vector<std::string>& scores = spec.scores_of_column(grid, columns[i]);
      of_first.emplace_back(i, "");
      for (const std::string& score : scores) of_each.emplace_back(i, score);
      are_known &= !scores.empty() && std::ranges::none_of(scores, is_pattern);
    }
    if (!are_known) of_each = of_first;
  }
};

void load_published_row(const toml::table& published, const std::string& file, const PublishedPlaces& places,
                        TableSpec::AddedLine& row) {
  TableReader reader(published, "published", file);
  row.source = name_at(reader, "source").value_or(Name());
  const toml::array* values = reader.list("values");
  reader.refuse_leftovers();
  const auto fit = [&](const auto& all) { return values && values->size() == all.size(); };
  if (row.source.text.empty() || !(fit(places.of_first) || fit(places.of_each))) {
    const bool has_several = places.of_each.size() > places.of_first.size();
    fail("{}: a row of published numbers needs their source and values = […], {} of them (the table's columns){}",
         reader.location(), places.of_first.size(),
         has_several ? fmt::format(", or {} (each score of each)", places.of_each.size()) : "");
  }
  row.published.resize(places.of_first.size());
  for (size_t i = 0; i < values->size(); ++i) {
    const auto& [column, score] = fit(places.of_each) ? places.of_each[i] : places.of_first[i];
    row.published[column].emplace(score, read_published(*values->get(i), reader));
  }
}

TableSpec::AddedLine load_row(TableReader& reader, const NamedLines& rows, const PublishedPlaces& places) {
  TableSpec::AddedLine row;
  row.labels = load_labels(reader, rows);
  load_sum(reader, rows, row);
  load_before(reader, rows, row);
  if (const toml::table* published = reader.table("published")) {
    if (!row.sum.empty())
      fail("{}: a row is a mean, a difference or published, one of them", reader.location("published"));
    load_published_row(*published, reader.file(), places, row);
  } else if (row.sum.empty()) {
    fail("{}: a row is a mean, a difference or published; write one of these", reader.location());
  }
  return row;
}

TableSpec::AddedLine load_column(TableReader& reader, const NamedLines& rows, const NamedLines& columns,
                                 TableSpec& spec) {
  TableSpec::AddedLine column;
  column.labels = load_labels(reader, columns);
  load_sum(reader, columns, column);
  if (column.sum.empty()) fail("{}: a column is a mean or a difference; write one of these", reader.location());
  load_before(reader, columns, column);
  if (const toml::node* baseline = reader.any("baseline")) {
    column.baseline = rows.find(*baseline, "baseline", reader);
    column.is_difference = true;
  }
  column.score = reader.text("score").value_or("");
  if (reader.has("score")) spec.named.push_back({column.score, "column.score", reader.location("score")});
  return column;
}

/// The rows that others are compared with: one, or a list of them.
std::vector<size_t> load_baselines(const toml::node& node, const NamedLines& rows, const TableReader& reader) {
  const toml::array* list = node.as_array();
  const bool are_several = list && !list->empty() && (rows.axes.size() == 1 || list->front().is_array());
  if (!are_several) return {rows.find(node, "baseline", reader)};
  std::vector<size_t> found = lines_named(node, "baseline", rows, reader);
  std::ranges::sort(found);
  if (const auto twice = std::ranges::adjacent_find(found); twice != found.end())
    fail("{}: baseline names the row \"{}\" twice", reader.location(node), fmt::join(rows.lines[*twice].labels, ", "));
  return found;
}

}  // namespace

void load_added_lines(TableReader& reader, const Grid& grid, const Layout& layout, TableSpec& spec) {
  const NamedLines rows{lines_of(grid, spec.arrangement.rows, layout.rows), "row"},
      columns{lines_of(grid, spec.arrangement.columns, layout.columns), "column"};
  if (const toml::node* baseline = reader.any("baseline")) spec.baselines = load_baselines(*baseline, rows, reader);
  const PublishedPlaces places(grid, spec, layout.columns);
  for (const toml::table* table : reader.tables("row")) {
    TableReader own(*table, "[[table.row]]", reader.file());
    TableSpec::AddedLine row = load_row(own, rows, places);
    require_other_labels(row, spec.added_rows, rows, own);
    spec.added_rows.push_back(std::move(row));
    own.refuse_leftovers();
  }
  for (const toml::table* table : reader.tables("column")) {
    TableReader own(*table, "[[table.column]]", reader.file());
    TableSpec::AddedLine column = load_column(own, rows, columns, spec);
    require_other_labels(column, spec.added_columns, columns, own);
    spec.added_columns.push_back(std::move(column));
    own.refuse_leftovers();
  }
}

}  // namespace tearless::harness
