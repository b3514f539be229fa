// A view that is a figure: the sections [[figure]] of a grid file.
//
//   [[figure]]
//   caption = "Dev BLEU by epoch"
//   x       = "epoch"                  # updates, hours, layer, an axis of numbers, or a metric
//   y       = "dev.bleu"               # a metric, gradient_norms, or a score
//   lines   = "system"                 # axes: each combination is a line, the mean of its seeds with a band
//   kind    = "lines"                  # or bars
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/curve.h"
#include "harness/views/table_spec.h"

namespace tearless::harness {

struct FigureSpec {
  static constexpr const char* kSection = "figure";
  static constexpr const char* kTitle = "caption";
  static constexpr bool kHasDefaultTitle = false;

  enum class Kind { kLines, kBars };
  enum class X {
    kUpdates,
    kHours,   // of training: updates × the run's seconds an update
    kLayer,   // that stands for * in the name of a score
    kAxis,    // whose labels are numbers, if the kind is not over labels
    kMetric,  // its value at the same update
  };
  enum class Band { kNone, kStd, kCi95, kRange };

  /// A line of another source.
  struct PublishedLine {
    Name source;
    std::string label;                        // of a line of its own; "": they are numbers of one of the grid's lines
    std::vector<uint32_t> line_at, panel_at;  // a point of each axis of `lines` (without a label) and `panels`
    std::string y;
    Curve points;
  };

  std::string location;
  std::string name;  // of its file and of \label: a word
  Kind kind = Kind::kLines;
  X x = X::kUpdates;
  std::string metric;            // kMetric
  size_t axis = 0;               // kAxis: index into Grid::axes
  std::vector<uint32_t> labels;  // of a kind over labels: the points of `axis` that stand at x = 1, 2 …
  std::vector<std::string> y;
  std::vector<size_t> lines, panels;  // indices into Grid::axes
  bool line_for_each_run = false;     // `lines` has the word seed
  bool panel_for_each_y = false;      // `panels` has the word y
  Where where;
  Band band = Band::kStd;
  int smooth = 1;           // points: each becomes the mean of so many about it
  std::optional<int> bins;  // equal parts of the x axis: the points in each become their mean
  bool log_x = false, log_y = false;
  bool ends_at_fewer = true;  // lines end where some of their runs have ended, or not begun; otherwise they are dashed
  bool caption_in_picture = true;   // of SVG, PDF and PNG
  bool legend_inside = false;       // in a corner of a panel that is free; below if none is
  std::optional<double> font_size;  // in points; unset: that of each format
  bool share_y = true;              // panels of one y have the same axis of it
  TableSpec::Width width = TableSpec::Width::kColumn;
  std::optional<double> own_width;  // in mm, in place of that of a column or page; `width` is the nearer of these
  std::vector<PublishedLine> published;
  std::vector<NamedScore> named, metrics;  // of y and x
  std::vector<IdleKey> idle;
};

/// What distinguishes a kind in a grid file and in words. What it looks like is in figure/drawing.h.
struct FigureKind {
  const char *word, *lines, *bands;  // "Lines: the mean of 3 seeds; bands: …"
  bool is_over_labels;               // x is an axis, whose labels stand side by side; otherwise they are numbers
};
const FigureKind& kind_of(FigureSpec::Kind kind);

/// Whether curves over this are of metrics; others are of scores.
bool is_of_metrics(FigureSpec::X x);

/// UserError with file and line for every mistake.
void read_view(TableReader& reader, const Grid& grid, const std::vector<View>& others, FigureSpec& spec);

}  // namespace tearless::harness
