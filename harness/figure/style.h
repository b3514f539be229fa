// How the lines of a picture are told apart: by colour, by dash and by mark. Internal to harness/figure.
#pragma once

#include <cstddef>
#include <string_view>

namespace tearless::harness {

struct LineStyle {
  struct Dash {
    std::string_view gnuplot, tikz;
  };
  struct Mark {
    int gnuplot;  // its type of points
    std::string_view pgfplots;
  };

  std::string_view colour;  // RRGGBB
  Dash dash;
  Mark mark;
};

/// Of the first 24 measured lines no two have the same colour and dash, so they differ without marks, nor the same dash
/// and mark, so they differ without colour. Published lines have short dashes and hollow marks, others filled ones.
LineStyle style_of(size_t line, bool is_published);

}  // namespace tearless::harness
