// What every picture of a figure shows, in whichever format: axes with their ticks, lines of few enough points, areas,
// where the marks are, the texts of the legend. Internal to harness/figure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/figure/figure.h"
#include "harness/figure/style.h"

namespace tearless::harness {

/// The least and the greatest of values that have a place on an axis.
struct Extent {
  bool is_log = false;
  std::optional<double> low = {}, high = {};
  bool all_whole = true;

  void add(double value);
};
/// Of the points, the diverged runs and the limits of all panels.
Extent extent_of_x(const Figure& figure);
/// Of the limits and the lines that set the scale with their bands, or else of all lines, of all panels with the axis
/// of this one. Without a value if this one has none.
Extent extent_of_y(const Figure& figure, const Figure::Panel& panel);

/// In mm.
double width_of(const Figure& figure);

inline constexpr double kSlant = 0.71;  // the height of a slanting text: of its width

struct DrawnAxis {
  struct Tick {
    double at = 0;
    Name label = {};

    /// Of the label, in characters.
    double width() const;
  };

  double low = 0, high = 1;
  bool is_log = false;
  std::vector<Tick> ticks = {};
  bool is_of_labels = false;  // the ticks are the labels of a grid's axis, at 1, 2 …
  bool is_slanting = false;   // so they are set, as they are too long to stand side by side

  /// The characters of the longest label.
  double width() const;
  /// 0 at the low end, 1 at the other. REQUIRES: the value is above 0 where the axis is logarithmic.
  double position(double value) const;
  /// What has this position.
  double value(double position) const;
};

/// A line of a panel. Every number is finite, lies on its axis or not far outside, and is above 0 where that is
/// logarithmic.
struct DrawnLine {
  size_t index = 0;  // of its legend
  LineStyle style = {};
  std::vector<std::vector<BandPoint>> stretches = {};  // each is joined; between them the line is interrupted
  std::vector<std::vector<BandPoint>> areas = {};      // each is filled between low and high
  Curve marks = {};
  Curve diverged = {};
};

/// Whether a stretch is of fewer runs than the line has.
bool is_dashed(const std::vector<BandPoint>& stretch);

struct DrawnPanel {
  Name title = {}, y_label = {};
  DrawnAxis x = {}, y = {};
  std::vector<DrawnLine> lines = {};         // those with a point or a diverged run here
  std::vector<double> at_x = {}, at_y = {};  // dashed lines
};

/// A kind of figure. A new one is an entry of FigureSpec::Kind with its words in grid/figure_spec.cc, two functions,
/// and a row of kKinds in drawing.cc.
struct FigureDrawing {
  bool has_zero;   // on the axis of y
  bool has_boxes;  // the legend shows areas in place of lines
  /// Adds the lines of a panel, on its axes.
  void (*draw)(const Figure& figure, const Figure::Panel& panel, const std::vector<LineStyle>& styles,
               DrawnPanel& drawn);
  /// A panel as text, without its heading. No line is longer than `width`.
  std::string (*text)(const Figure& figure, const Figure::Panel& panel, size_t width, bool colour);
};
const FigureDrawing& drawing_of(FigureSpec::Kind kind);

std::string text_of_lines(const Figure& figure, const Figure::Panel& panel, size_t width, bool colour);
std::string text_of_bars(const Figure& figure, const Figure::Panel& panel, size_t width, bool colour);

/// The lines that some panel shows, in their order, those that are published behind the one that they are beside.
std::vector<size_t> shown_lines(const Figure& figure);

struct LegendEntry {
  size_t index = 0;
  LineStyle style = {};
  Name text = {};
};

struct Drawing {
  std::vector<DrawnPanel> panels = {};
  size_t columns = 1;  // of panels
  std::vector<LegendEntry> legend = {};
  std::vector<Name> notes = {};
  bool has_boxes = false;  // FigureDrawing

  size_t rows() const { return (panels.size() + columns - 1) / columns; }
  /// Whether no panel is below this one.
  bool is_lowest(size_t panel) const { return panel + columns >= panels.size(); }
};

Drawing drawing_of(const Figure& figure);

/// The characters of the longest text in the legend.
size_t legend_width(const Drawing& drawing);

/// How many columns of the legend fit side by side in `width`, where an entry takes `sample` and a character 1. Not
/// more than its rows need.
size_t legend_columns(const Drawing& drawing, double width, double sample);

/// A corner of a panel.
struct Corner {
  size_t panel = 0;
  bool is_right = true, is_top = true;
};
/// Where a box of this width and height, shares of those of a panel, covers nothing that is drawn; nullopt: nowhere.
std::optional<Corner> free_corner(const Drawing& drawing, double width, double height);

/// A number with the digits that a picture can show.
std::string picture_number(double value);

}  // namespace tearless::harness
