#include "harness/table/one_cell.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/table/called.h"
#include "harness/table/formats.h"
#include "harness/views/show.h"

namespace tearless::harness {
namespace {

/// A cell with what words name: its labels and its score, each as the grid has it and in print.
struct Candidate {
  const Table* table;
  const Table::Column* column;
  const TableCell* cell;
  std::vector<CalledLabel> labels;
  Called score;

  /// Null: it has no such axis.
  const Called* label_on(const std::string& axis) const {
    const auto own = std::ranges::find_if(labels, [&](const CalledLabel& one) { return one.axis.is(axis); });
    return own == labels.end() ? nullptr : &own->label;
  }

  std::vector<std::string> axes() const {
    std::vector<std::string> names;
    for (const CalledLabel& one : labels) names.push_back(one.axis.name);
    return names;
  }
  std::vector<std::string> scores() const { return {score.name}; }
};

using Candidates = std::vector<Candidate>;

void add_labels(const Table& table, const std::vector<std::string>& axes, const std::vector<std::string>& labels,
                std::vector<CalledLabel>& all) {
  for (size_t i = 0; i < axes.size(); ++i) all.emplace_back(table.names, axes[i], labels[i]);
}

Candidates all_cells(const std::vector<Table>& tables) {
  Candidates all;
  for (const Table& table : tables) {
    for (const Table::Row& row : table.rows) {
      for (size_t i = 0; i < table.columns.size(); ++i) {
        const Table::Column& column = table.columns[i];
        Candidate& one = all.emplace_back(Candidate{.table = &table,
                                                    .column = &column,
                                                    .cell = &row.cells[i],
                                                    .labels = {},
                                                    .score = {column.score, name_of(table.names, column.score).text}});
        add_labels(table, table.row_axes, row.labels, one.labels);
        add_labels(table, table.column_axes, column.labels, one.labels);
      }
    }
  }
  return all;
}

std::vector<std::string> labels_on(const Candidates& all, const std::string& axis) {
  return each_once(all, [&](const Candidate& one) {
    const Called* label = one.label_on(axis);
    return label ? std::vector<std::string>{label->name} : std::vector<std::string>();
  });
}

/// Keeps the cells that a word means. `kind`: what it names; `known`: the names that there are of it.
template <class Is>
void keep(Candidates& all, Is is, const std::string& kind, const std::string& word,
          const std::vector<std::string>& known, const std::string& location) {
  Candidates kept;
  std::ranges::copy_if(all, std::back_inserter(kept), is);
  if (kept.empty()) {
    fail("{}: no cell that is meant has the {} \"{}\"{}; they have: {}", location, kind, word,
         did_you_mean(word, known), fmt::join(known, ", "));
  }
  all = std::move(kept);
}

/// What tells several cells apart.
std::string difference_of(const Candidates& several) {
  for (const std::string& axis : each_once(several, &Candidate::axes)) {
    const std::vector<std::string> labels = labels_on(several, axis);
    if (labels.size() > 1) return fmt::format("add {}=LABEL, of {}", axis, fmt::join(labels, ", "));
  }
  const std::vector<std::string> scores = each_once(several, &Candidate::scores);
  if (scores.size() > 1) return fmt::format("add a score, of {}", fmt::join(scores, ", "));
  const std::vector<std::string> captions =
      each_once(several, [](const Candidate& one) { return std::vector<std::string>{one.table->title.text}; });
  return fmt::format("they are of the tables \"{}\"", fmt::join(captions, "\", \""));
}

std::string shown_of(const Candidate& one, const std::string& show, const std::string& location) {
  if (show.empty()) return measured_text(*one.table, *one.column, *one.cell);
  if (show != "{published}" && show != "{difference}") {
    Table::Column column = *one.column;
    column.show = read_show(show, location);
    return shown_text(*one.table, column, *one.cell);
  }
  const std::string text = show == "{published}" ? published_number_text(*one.column, *one.cell)
                                                 : difference_text(*one.table, *one.column, *one.cell);
  if (text.empty()) fail("{}: the cell has no {}", location, show);
  return text;
}

}  // namespace

OneCell one_cell(const std::vector<Table>& tables, const std::vector<std::string>& words, TableFormat format,
                 const std::string& location) {
  Candidates meant = all_cells(tables);
  const std::vector<std::string> axes = each_once(meant, &Candidate::axes);
  std::string show;
  for (const std::string& word : words) {
    const size_t equals = word.find('='), brace = word.find('{');
    if (brace < equals) {
      if (!show.empty()) fail("{}: it shows {} and {}; choose one", location, show, word);
      show = word;
    } else if (equals == std::string::npos) {
      keep(
          meant, [&](const Candidate& one) { return one.score.is(word); }, "score", word,
          each_once(meant, &Candidate::scores), location);
    } else {
      const std::string axis = word.substr(0, equals), label = word.substr(equals + 1);
      keep(
          meant, [&](const Candidate& one) { return one.label_on(axis) != nullptr; }, "axis", axis, axes, location);
      keep(
          meant, [&](const Candidate& one) { return one.label_on(axis)->is(label); }, axis, label,
          labels_on(meant, axis), location);
    }
  }
  if (meant.size() > 1) fail("{}: {} cells are meant; {}", location, meant.size(), difference_of(meant));
  const Candidate& cell = meant.front();
  return {.text = text_in(format, shown_of(cell, show, location), location),
          .has_value = show == "{published}" || cell.cell->cell.n() > 0};
}

}  // namespace tearless::harness
