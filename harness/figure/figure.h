// Figures: lines with bands over updates, layers or an axis, and bars over its labels. What draws one reads the runs'
// metrics; what prints one is pure: no database, no terminal, no clock.
//
//   FigureSpec, ResultSet --draw()--> Figure --render_text()─> text, for a terminal
//   rows of `tearless plot` ────────────┘  ├─render_csv(), json_of(), render_pgfplots()
//                                          └─render_svg()──rsvg-convert──> PDF, PNG
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/console/columns.h"
#include "harness/grid/names.h"
#include "harness/statistics/curve.h"
#include "harness/views/figure_spec.h"

namespace tearless::harness {

/// Several runs at one x. Without a run, mean, low and high are NaN, and the line is interrupted.
struct BandPoint {
  double x = 0;
  int runs = 0;  // that have a value there
  double mean = 0, low = 0, high = 0;
  bool is_of_fewer = false;  // than elsewhere on its line: some of its runs have ended, or not begun. Drawn dashed
};

struct Figure {
  struct Line {
    std::vector<BandPoint> points = {};
    std::vector<BandPoint> not_drawn = {};  // those of fewer runs, where the line ends at them; in CSV
    Curve diverged = {};                    // the last values of runs that have diverged: each is drawn as ×
    bool sets_scale = true;                 // false: it may leave the picture, unless no line sets the scale
    std::vector<std::string> labels = {};   // for CSV: one for each of Figure::axes
    std::string y = {};                     // what it is of
    std::string source = {};                // of a published line; "": measured
  };
  struct Panel {
    Name title = {};               // "": the figure has one panel
    Name y = {};                   // beside its axis
    size_t scale = 0;              // panels of one number have the same axis of y
    std::vector<Line> lines = {};  // lines[i] is explained by legend[i]; without points it is not in this panel
    std::vector<double> at_x = {}, at_y = {};  // limits of scores and claims: dashed lines across the panel
  };

  /// A label of the axis of x.
  struct Label {
    std::string label;
    Name name;
  };

  FigureSpec::Kind kind = FigureSpec::Kind::kLines;
  Name title = {};
  std::string name = {};  // of its file; "": the command chooses
  Name x = {};
  std::vector<Label> labels = {};  // at 1, 2 … of x; none: x is a number
  bool log_x = false, log_y = false;
  bool from_zero = true;  // the axis of x begins at 0
  std::vector<Panel> panels = {};
  std::vector<std::string> axes = {};          // for CSV
  std::vector<Name> heading = {};              // of the legend's columns
  std::vector<std::vector<Name>> legend = {};  // for each line a row, with a cell for each column
  std::map<size_t, size_t> measured = {};      // published line → the measured one that it is beside
  std::vector<Name> notes = {};                // one sentence each
  TableSpec::Width width = TableSpec::Width::kColumn;
  std::optional<double> own_width = {};  // FigureSpec
  std::optional<double> font_size = {};
  bool caption_in_picture = true, legend_inside = false;
};

/// The points of a line that a run has, also those that are not drawn, in the order of x.
std::vector<BandPoint> points_in_order(const Figure::Line& line);

/// The letter that marks one of `lines` lines: A … Z, a … z, 0 … 9. Where they are not enough, all lines have two
/// letters, or more: AA, AB …
std::string letters_of(size_t line, size_t lines);

/// Draws the panels one below the other with the same axis of x, then the legend. Where several points share a column
/// of dots, their means are averaged. No line has more than `columns` characters if that is at least 40.
std::string render_text(const Figure& figure, size_t columns, bool colour);

/// A line for each point: labels, y, x, mean, low, high, runs, source; numbers in full precision. One for each diverged
/// run, which has its last value in a column of its own.
std::string render_csv(const std::vector<Figure>& figures, Formulas formulas);

/// All that CSV has, and the texts: figures, their panels, lines, points.
nlohmann::json json_of(const std::vector<Figure>& figures);

/// A figure environment with a tikzpicture, for \usepackage{pgfplots} with its library groupplots.
std::string render_pgfplots(const Figure& figure);

/// A picture as wide as a column or a page, white behind. It has neither ids nor styles, so that it can stand in a page
/// of HTML.
std::string render_svg(const Figure& figure);

/// About how many mm high they are, with caption, legend and notes.
double height_of_pgfplots(const Figure& figure);
double height_of_svg(const Figure& figure);

}  // namespace tearless::harness
