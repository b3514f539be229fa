// What every picture of a figure shows, whichever program draws it: axes with their ticks, lines of few enough points,
// where the marks are, the texts of the legend. Internal to harness/figure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/figure/figure.h"
#include "harness/figure/style.h"

namespace tearless::harness {

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
  std::vector<std::vector<BandPoint>> bands = {};      // stretches where low < high
  Curve marks = {};
  Curve diverged = {};
};

struct DrawnPanel {
  Name title = {}, y_label = {};
  DrawnAxis x = {}, y = {};
  std::vector<DrawnLine> lines = {};         // those with a point or a diverged run here
  std::vector<double> at_x = {}, at_y = {};  // dashed lines
};

struct LegendEntry {
  size_t index = 0;
  LineStyle style = {};
  Name text = {};
};

struct Drawing {
  std::vector<DrawnPanel> panels = {};
  size_t columns = 1;  // of panels
  std::vector<LegendEntry> legend = {};
  std::vector<std::string> notes = {};

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

/// A number with the digits that a picture can show.
std::string picture_number(double value);

}  // namespace tearless::harness
