#include "harness/views/table_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/pattern.h"
#include "base/spelling.h"
#include "base/table_reader.h"
#include "base/words.h"
#include "harness/grid/labels.h"
#include "harness/views/added_lines.h"
#include "harness/views/layout.h"
#include "harness/views/reading.h"

namespace tearless::harness {
namespace {

std::vector<std::string> labels_of(const toml::table& table) {
  std::vector<std::string> labels;
  for (const auto& [label, node] : table) labels.emplace_back(label.str());
  return labels;
}

Arrangement::Select load_select(const toml::table& table, const std::string& file, const Grid& grid, TableSpec& spec) {
  TableReader reader(table, "select", file);
  Arrangement::Select select;
  select.over = axes_named(reader, "over", grid);
  select.by = reader.text("by").value_or("");
  select.highest = reader.choice("best", {"highest", "lowest"}, 0) == 0;
  reader.refuse_leftovers();
  if (select.over.empty() || select.by.empty()) {
    fail("{}: select needs `over` (the axes to choose on) and `by` (the score that chooses)", reader.location());
  }
  spec.named.push_back({select.by, "select.by", reader.location("by")});
  return select;
}

// --- where each axis is ---------------------------------------------------------------------------------------------

/// Checks that each axis is in at most one of rows, columns, average and select.over, and places the axes that are in
/// none; one of which `where` leaves a single point needs no place:
///   1. no rows and no columns given: the first of them becomes the row axis, the others column axes; all become row
///      axes with sub-grids and in a sample, where most places of such a table would be empty;
///   2. only rows (or only columns) given: they become column (or row) axes;
///   3. both given: UserError.
void place_axes(TableReader& reader, const Grid& grid, TableSpec& spec) {
  std::vector<std::string> stands(grid.axes.size());
  const auto mark = [&](const std::vector<size_t>& axes, const std::string& where) {
    for (const size_t axis : axes) {
      if (!stands[axis].empty()) {
        fail("{}: the axis {} is in both {} and {}; it can be in one of them, once", reader.location(),
             grid.axes[axis].name, stands[axis], where);
      }
      stands[axis] = where;
    }
  };
  mark(spec.arrangement.rows, "rows");
  mark(spec.arrangement.columns, "columns");
  mark(spec.arrangement.average, "average");
  if (spec.arrangement.select) mark(spec.arrangement.select->over, "select.over");

  const bool no_rows = spec.arrangement.rows.empty();
  const bool no_columns = spec.arrangement.columns.empty();
  const bool is_product = grid.axes.front().name != kSubgridAxis && !grid.sample;
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    if (!stands[axis].empty() || leaves_one_point(grid, spec.arrangement.where, axis)) continue;
    if (no_rows && (spec.arrangement.rows.empty() || !no_columns || !is_product)) {
      spec.arrangement.rows.push_back(axis);
    } else if (no_columns) {
      spec.arrangement.columns.push_back(axis);
    } else {
      fail("{}: the axis {} is neither in rows nor in columns", reader.location(), grid.axes[axis].name);
    }
  }
}

// --- what the cells show --------------------------------------------------------------------------------------------

/// Whether the runs decide which scores the table shows.
bool are_open(const TableSpec& spec) { return spec.scores.empty() || std::ranges::any_of(spec.scores, is_pattern); }

/// UserError for a score, or a pattern, that the table has none for.
void require_shown(const std::string& called, const char* key, const std::string& location, const TableSpec& spec) {
  const auto is_called = [&](const std::string& score) { return matches_pattern(called, score); };
  if (are_open(spec) || std::ranges::any_of(spec.scores, is_called)) return;
  fail("{}: {} of {}{}, which the table does not show; its scores are {}", location, key, called,
       did_you_mean(called, spec.scores), fmt::join(spec.scores, ", "));
}

// A key of which the value is for all scores, or a table of score (or pattern) = value. `add` reads one value.
template <class Add>
void load_by_score(const toml::node& node, const std::string& key, const TableReader& reader, TableSpec& spec,
                   const Add& add) {
  if (const auto* by_score = node.as_table()) {
    for (const auto& [score, value] : *by_score) {
      add(std::string(score.str()), value);
      spec.named.push_back({std::string(score.str()), key, reader.location(value)});
    }
  } else {
    add("*", node);
  }
}

void load_show(TableReader& reader, TableSpec& spec) {
  const toml::node* show = reader.any("show");
  if (!show) return;
  load_by_score(*show, "show", reader, spec, [&](const std::string& score, const toml::node& value) {
    const std::optional<std::string> text = value.value_exact<std::string>();
    if (!text) {
      fail("{}: show must be a text, as in \"{{mean}} ± {{std}}\", or a table of score = text", reader.location(value));
    }
    spec.shows[score] = read_show(*text, reader.location(value));
  });
}

void load_cell(const toml::table& table, const std::string& file, TableSpec& spec) {
  TableReader reader(table, "cell", file);
  if (const auto score = reader.text("score")) {
    if (!spec.scores.empty() || spec.scores_axis)
      fail("{}: write either cell.score or scores, not both", reader.location("score"));
    spec.scores = {*score};
    spec.named.push_back({*score, "cell.score", reader.location("score")});
  }
  load_show(reader, spec);
  reader.refuse_leftovers();
}

/// `scores`: a name or names; or { axis = { label = name or names } }, an axis whose labels have scores of their own.
void load_scores(TableReader& reader, const Grid& grid, TableSpec& spec) {
  const toml::node* node = reader.any("scores");
  const toml::table* table = node ? node->as_table() : nullptr;
  if (!table) {
    spec.scores = reader.texts("scores");
    for (const std::string& score : spec.scores) spec.named.push_back({score, "scores", reader.location("scores")});
    return;
  }
  if (table->size() != 1 || !table->begin()->second.is_table()) {
    fail(
        "{}: scores must be a name, names, or one axis of which each label has its own, as in scores.task = {{ "
        "\"RT\" = \"test.accuracy\", … }}",
        reader.location("scores"));
  }
  const std::string name(table->begin()->first.str());
  const toml::table& by_label = *table->begin()->second.as_table();
  spec.scores_axis = grid.axis_index(name, reader.location(by_label) + ": scores");
  TableReader labels(by_label, "scores." + name, reader.file());
  const std::vector<std::string> written = labels_of(by_label);
  for (const AxisPoint& point : grid.axes[*spec.scores_axis].points) {
    const auto entry = find_spelled(written, point.label);
    const std::string& word = entry == written.end() ? point.label : *entry;
    std::vector<std::string>& scores = spec.scores_of_label[point.label] = labels.texts(word);
    const auto index = static_cast<size_t>(&point - grid.axes[*spec.scores_axis].points.data());
    for (const std::string& score : scores) {
      spec.named.push_back({score, "scores." + name, labels.location(word), std::pair(*spec.scores_axis, index)});
      if (std::ranges::find(spec.scores, score) == spec.scores.end()) spec.scores.push_back(score);
    }
    if (scores.empty() && spec.arrangement.where.has(grid.axes[*spec.scores_axis].name, point.label))
      fail("{}: scores.{} has none for {}", reader.location(by_label), name, point.label);
  }
  labels.refuse_leftovers();
}

void load_decimals(const toml::node& node, const TableReader& reader, TableSpec& spec) {
  load_by_score(node, "decimals", reader, spec, [&](const std::string& score, const toml::node& value) {
    const auto decimals = value.value_exact<int64_t>();
    if (!decimals || *decimals < 0 || *decimals > 9) {
      fail("{}: decimals must be a whole number from 0 to 9, or a table of score = number", reader.location(value));
    }
    spec.decimals[score] = static_cast<int>(*decimals);
  });
}

void load_factors(const toml::node& node, const TableReader& reader, TableSpec& spec) {
  constexpr double kLeast = 1e-9, kMost = 1e9;
  load_by_score(node, "factor", reader, spec, [&](const std::string& score, const toml::node& value) {
    const std::optional<double> factor = value.is_number() ? value.value<double>() : std::nullopt;
    if (!factor || !(*factor >= kLeast && *factor <= kMost)) {
      fail("{}: factor must be a number from 1e-9 to 1e9, such as 100 for percent, or a table of score = number",
           reader.location(value));
    }
    if (!is_pattern(score)) require_shown(score, "factor", reader.location(value), spec);
    spec.rules.factors[score] = *factor;
  });
}

void load_best(const toml::node& node, const TableReader& reader, TableSpec& spec) {
  load_by_score(node, "best", reader, spec, [&](const std::string& score, const toml::node& value) {
    const std::optional<std::string> word = value.value_exact<std::string>();
    if (word != "highest" && word != "lowest")
      fail("{}: best must be \"highest\" or \"lowest\", or a table of score = one of them", reader.location(value));
    spec.highest_is_best[score] = word == "highest";
  });
}

void load_tolerances(const toml::node& node, const TableReader& reader, TableSpec& spec, Published& published) {
  const auto add = [&](const std::string& score, const toml::node& value) {
    published.tolerances[score] = read_tolerance(value, reader);
  };
  if (is_prediction(node)) {
    add("*", node);
  } else {
    load_by_score(node, "published.tolerance", reader, spec, add);
  }
}

/// One [table.published], or several [[table.published]].
void load_published(const toml::table& table, const std::string& file, const Layout& layout, TableSpec& spec) {
  TableReader reader(table, "published", file);
  Published published;
  published.source = name_at(reader, "source").value_or(Name());
  if (published.source.text.empty())
    fail("{}: published needs its source, as in source = \"…, Table 3\"", reader.location());
  const std::optional<std::string> score = reader.text("score");
  if (score) {
    spec.named.push_back({*score, "published.score", reader.location("score")});
    if (!are_open(spec) && std::ranges::find(spec.scores, *score) == spec.scores.end()) {
      fail("{}: published.score is {}{}, which the table does not show; its scores are {}", reader.location("score"),
           *score, did_you_mean(*score, spec.scores), fmt::join(spec.scores, ", "));
    }
  }
  published.score = score.value_or("");
  const bool has_other =
      std::ranges::any_of(spec.published, [&](const Published& other) { return other.score == published.score; });
  if (const auto* tolerance = reader.any("tolerance")) load_tolerances(*tolerance, reader, spec, published);
  const toml::array* rows = reader.list("values");
  if (!rows) fail("{}: published needs values = [[…], …], one list for each row of the table", reader.location());
  reader.refuse_leftovers();
  if (rows->size() != layout.rows.size()) {
    fail("{}: published values have {} rows where the table has {}", reader.location("values"), rows->size(),
         layout.rows.size());
  }
  for (const toml::node& row : *rows) {
    const toml::array* columns = row.as_array();
    if (!columns || columns->size() != layout.columns.size()) {
      fail("{}: a row of published values must be a list of {} (the table's columns)", reader.location(row),
           layout.columns.size());
    }
    std::vector<PublishedNumber>& values = published.values.emplace_back();
    for (const toml::node& value : *columns) {
      PublishedNumber& number = values.emplace_back(read_published(value, reader));
      if (has_other && number.source.text.empty()) number.source = published.source;  // to tell them from the first
    }
  }
  if (has_other) published.source = {};
  spec.published.push_back(std::move(published));
}

// --- how it is printed ----------------------------------------------------------------------------------------------

/// `within` of [table.test]: a limit for all scores, or a table of score = limit.
void load_within(const toml::node& node, const TableReader& reader, const Grid& grid, TableSpec& spec) {
  const std::string location = reader.location("within");
  if (spec.test->method != SignificanceTest::Method::kT)
    fail("{}: within is of method = \"t\", whose interval says what is equivalent to its baseline", location);
  if (spec.baselines.empty())
    fail("{}: within marks what is equivalent to its baseline; add baseline = \"its label\" to the table", location);
  load_by_score(node, "test.within", reader, spec, [&](const std::string& called, const toml::node& value) {
    require_shown(called, "within", reader.location(value), spec);
    std::vector<std::string> scores;  // as far as the grid file names them
    if (!is_pattern(called)) {
      scores = {called};
    } else if (!are_open(spec)) {
      std::ranges::copy_if(spec.scores, std::back_inserter(scores),
                           [&](const std::string& score) { return matches_pattern(called, score); });
    }
    const std::string example = scores.empty() ? "bleu" : last_word(scores.front());
    const std::string at = reader.location(value) + ": within";
    const Within within = read_within(value, at, example, "the baseline");
    if (scores.empty() && !within.is_percent()) {
      fail(
          "{}: the runs decide which scores the table shows; write within = {{ \"the score\" = \"{} {}\" }}, or a "
          "percentage",
          at, within.limit, within.unit);
    }
    for (const std::string& score : scores) {
      if (within.is_percent() || is_unit_of(within.unit, score, grid.names)) continue;
      fail("{}: {} is not the unit of {}; write within = {{ \"{}\" = \"{} {}\" }}, or a percentage", at, within.unit,
           score, score, within.limit, last_word(score));
    }
    spec.test->within[called] = within;
  });
}

void load_test(const toml::table& table, const TableReader& reader, const Grid& grid, TableSpec& spec) {
  TableReader own(table, "[table.test]", reader.file());
  const toml::node* within = own.any("within");
  spec.test = read_significance_test(own, grid.seeds.size() > 1);
  if (within) load_within(*within, own, grid, spec);
  if (!spec.arrangement.average.empty() && spec.test->is_over_sentences()) {
    fail("{}: the cells of a table with `average` have no sentences; use method = \"t\" or \"sign-flip\"",
         reader.location(table));
  }
}

/// `bold` of the table; without it what its test makes bold.
void load_bold(TableReader& reader, TableSpec& spec) {
  using Bold = TableSpec::Bold;
  spec.bold = spec.test && spec.test->is_bold ? Bold::kNotWorse : Bold::kNone;
  if (const toml::node* node = reader.any("bold")) {
    const std::string word = node->value_exact<std::string>().value_or("");
    const bool is_off = node->value_exact<bool>() == false;
    if (!is_off && word != "best" && word != "not_worse")
      fail("{}: bold must be \"best\", \"not_worse\" or false", reader.location("bold"));
    if (word == "not_worse" && !spec.test)
      fail("{}: bold = \"not_worse\" is by a test: add [table.test], or write \"best\"", reader.location("bold"));
    spec.bold = is_off ? Bold::kNone : word == "best" ? Bold::kBest : Bold::kNotWorse;
  }
  if (spec.test && spec.baselines.empty() && spec.bold != Bold::kNotWorse) {
    fail(
        "{}: [table.test] compares rows with baseline = \"its label\", or with bold = \"not_worse\" those of a column "
        "with the best of it; write one of them",
        reader.location("test"));
  }
}

void note_idle_keys(const TableReader& reader, const Grid& grid, TableSpec& spec) {
  // A mean of scores asks for it where they differ in it.
  const bool has_means = !std::ranges::all_of(grid.defined_scores, &DefinedScore::is_of_curve);
  const bool shows_no_order =
      spec.bold == TableSpec::Bold::kNone && spec.baselines.empty() && spec.shows.empty() && !spec.test && !has_means;
  if (reader.has("best") && shows_no_order)
    spec.idle.push_back({.key = fmt::format("[table] best ({})", reader.location("best")), .unless_claims = true});
  if (reader.has("bold") && spec.test && !spec.test->bold_location.empty()) {
    spec.idle.push_back({.key = fmt::format("[table.test] bold ({})", spec.test->bold_location),
                         .because = fmt::format("bold of [table] ({})", reader.location("bold"))});
  }
}

void require_what_show_needs(const TableReader& reader, const TableSpec& spec) {
  using Needs = Statistic::Needs;
  const auto require_of = [&](const ShownPart& part) {
    const Needs needs = part.statistic->needs;
    const auto require = [&](bool holds, const char* what) {
      if (!holds) fail("{}: {{{}}} needs {}", reader.location("show"), part.statistic->name, what);
    };
    if (needs == Needs::kNothing) return;
    require(!spec.baselines.empty(), "a row to compare with, which baseline = \"its label\" names");
    if (needs != Needs::kBaseline) require(spec.test.has_value(), "the section [table.test]");
    if (needs == Needs::kSentences)
      require(spec.test->is_over_sentences(), "a test over sentences: method = \"randomisation\" or \"bootstrap\"");
  };
  for (const auto& [score, show] : spec.shows) std::ranges::for_each(show.parts, require_of);
}

/// [[table.header]]: a name, and texts = { label = text } of labels of an axis of the columns.
void load_header(const toml::table& table, const std::string& file, const Grid& grid, TableSpec& spec) {
  TableReader reader(table, "[[table.header]]", file);
  const toml::node* name = reader.any("name");
  const toml::table* texts = reader.table("texts");
  if (!name || !texts || texts->empty())
    fail("{}: a line of the header needs its name and texts = {{ label = text, … }}", reader.location());
  reader.refuse_leftovers();
  const auto called = [&](size_t axis, std::string_view label) {
    return find_spelled(grid.axes[axis].points, label, &AxisPoint::label);
  };
  const auto has_all = [&](size_t axis) {
    return std::ranges::all_of(
        *texts, [&](const auto& entry) { return called(axis, entry.first.str()) != grid.axes[axis].points.end(); });
  };
  const auto axis = std::ranges::find_if(spec.arrangement.columns, has_all);
  if (axis == spec.arrangement.columns.end()) {
    fail("{}: no axis of the columns has all of these labels: {}", reader.location("texts"),
         fmt::join(labels_of(*texts), ", "));
  }
  TableSpec::HeaderLine line{.name = read_name(*name, "name", reader.location("name")), .axis = *axis, .texts = {}};
  for (const auto& [label, text] : *texts) {
    const std::string key = fmt::format("texts.{}", label.str());
    line.texts[called(*axis, label.str())->label] = text.is_number() || text.is_boolean()
                                                        ? Name{label_of(toml_to_json(text, key, file))}
                                                        : read_name(text, key, reader.location(text));
  }
  spec.header.push_back(std::move(line));
}

/// `notes`: words of kNotes, without which all stay, and notes of one's own as { text, latex }.
void load_notes(const toml::array& list, const TableReader& reader, TableSpec& spec) {
  if (list.empty()) spec.notes.emplace();
  for (const toml::node& node : list) {
    if (node.is_table()) {
      spec.own_notes.push_back(read_name(node, "notes", reader.location(node)));
      continue;
    }
    const std::string word = node.value_exact<std::string>().value_or("");
    if (std::ranges::find(TableSpec::kNotes, word) == TableSpec::kNotes.end()) {
      const std::vector<std::string> known(TableSpec::kNotes.begin(), TableSpec::kNotes.end());
      fail("{}: notes: {} names no note{}; there are {}, and {{ text = \"…\" }} for one of your own",
           reader.location(node), word.empty() ? "what is no text" : fmt::format("\"{}\"", word),
           did_you_mean(word, known), fmt::join(known, ", "));
    }
    if (!spec.notes) spec.notes.emplace();
    spec.notes->insert(word);
  }
}

/// \label{…} prints its text as it is: what LaTeX would take for a command must not be in it.
std::string load_label(TableReader& reader) {
  const std::string label = reader.text("label").value_or("");
  const bool is_plain = std::ranges::all_of(label, [](const unsigned char c) {
    return std::isalnum(c) || std::string_view(":-_./+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (!is_plain) {
    fail("{}: label = \"{}\" must be letters, digits and : - _ . / + for \\label of LaTeX, as in label = \"tab:norms\"",
         reader.location("label"), label);
  }
  return label;
}

}  // namespace

const std::vector<std::string>& TableSpec::scores_of_column(const Grid& grid,
                                                            const std::vector<uint32_t>& column) const {
  const std::vector<size_t>& columns = arrangement.columns;
  const auto axis = std::ranges::find_if(columns, [&](size_t one) { return one == scores_axis; });
  if (axis == columns.end()) return scores;
  return scores_of_label.at(grid.axes[*axis].points[column[static_cast<size_t>(axis - columns.begin())]].label);
}

void read_view(TableReader& reader, const Grid& grid, const std::vector<View>&, TableSpec& spec) {
  const std::string& file = reader.file();
  spec.arrangement.where = read_where(reader, grid);
  load_scores(reader, grid, spec);
  if (const auto* cell = reader.table("cell")) load_cell(*cell, file, spec);
  const toml::table* cell = reader.table("cell");
  if (cell && cell->contains("show") && reader.has("show"))
    fail("{}: write either cell.show or show, not both", reader.location("show"));
  load_show(reader, spec);
  if (const auto* decimals = reader.any("decimals")) load_decimals(*decimals, reader, spec);
  if (const auto* factors = reader.any("factor")) load_factors(*factors, reader, spec);
  if (const auto* best = reader.any("best")) load_best(*best, reader, spec);
  spec.rules.fail_below = reader.number("fail_below");
  spec.rules.count_diverged = reader.choice("diverged", {"excluded", "counted"}, 0) == 1;
  spec.arrangement.rows = axes_named(reader, "rows", grid);
  spec.arrangement.columns = axes_named(reader, "columns", grid);
  spec.arrangement.average = axes_named(reader, "average", grid);
  if (const auto* select = reader.table("select")) spec.arrangement.select = load_select(*select, file, grid, spec);
  if (spec.arrangement.select && !spec.arrangement.average.empty())
    fail("{}: a table has either select or average, not both", reader.location("average"));
  place_axes(reader, grid, spec);
  if (spec.scores_axis &&
      std::ranges::find(spec.arrangement.columns, *spec.scores_axis) == spec.arrangement.columns.end())
    fail("{}: scores.{}: the axis must be one of the columns", reader.location("scores"),
         grid.axes[*spec.scores_axis].name);

  if (spec.scores_axis && spec.rules.fail_below)
    fail("{}: fail_below is compared with one score, and columns have scores of their own",
         reader.location("fail_below"));

  const bool needs_layout = std::ranges::any_of(std::array{"where", "published", "baseline", "row", "column"},
                                                [&](const char* key) { return reader.has(key); });
  const Layout layout = needs_layout ? layout_of(grid, spec.arrangement) : Layout();  // a pass over all combinations
  if (reader.has("where") && layout.rows.empty()) fail("{}: where leaves no run of the grid", reader.location("where"));
  for (const auto* published : reader.tables("published")) load_published(*published, file, layout, spec);
  load_added_lines(reader, grid, layout, spec);
  if (const auto* test = reader.table("test")) load_test(*test, reader, grid, spec);
  load_bold(reader, spec);
  note_idle_keys(reader, grid, spec);
  require_what_show_needs(reader, spec);
  for (const auto* header : reader.tables("header")) load_header(*header, file, grid, spec);
  if (const auto* notes = reader.list("notes")) load_notes(*notes, reader, spec);
  spec.label = load_label(reader);
  spec.width = static_cast<TableSpec::Width>(reader.choice("width", {"as needed", "column", "page"}, 0));
}

}  // namespace tearless::harness
