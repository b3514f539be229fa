// Curves over updates, drawn for a terminal: what runs reported → lines with bands → text. Pure: no database, no
// terminal, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/results/result_set.h"

namespace tearless::harness {

/// Several runs at one step. Without a run, mean, low and high are NaN.
struct CurvePoint {
  int64_t step = 0;
  int runs = 0;  // that have a value there
  double mean = 0, low = 0, high = 0;
};

/// Mean, least and greatest value of several runs at each step at which one of them reported. Between two of its own
/// steps a run counts with the value on the straight line between these; before its first and after its last step, and
/// beside a value that is not finite, it does not count.
std::vector<CurvePoint> summary_of(std::vector<Series> runs);

struct Figure {
  struct Line {
    std::vector<CurvePoint> points = {};
    std::vector<Reported> diverged = {};  // the last values of runs that have diverged: each is drawn as ×
    bool sets_scale = true;               // false: it may leave the picture, unless no line sets the scale
  };
  struct Panel {
    std::string metric;
    std::vector<Line> lines;  // lines[i] is explained by legend[i]
  };
  std::vector<Panel> panels;
  std::vector<std::string> heading;              // of the legend's columns
  std::vector<std::vector<std::string>> legend;  // for each line a row, with a cell for each column
  std::string note = {};                         // below the legend; "": none
};

/// The letter that marks one of `lines` lines: A … Z, a … z, 0 … 9. Where they are not enough, all lines have two
/// letters, or more: AA, AB …
std::string letters_of(size_t line, size_t lines);

/// Draws the panels one below the other with the same axis of updates, then the legend. Where several steps share a
/// column of dots, their means are averaged. No line has more than `columns` characters if that is at least 40.
std::string render(const Figure& figure, size_t columns, bool colour);

}  // namespace tearless::harness
