// How the lines of a picture are told apart: by colour, by dash and by mark. Internal to harness/figure.
#pragma once

#include <cstddef>
#include <string_view>

namespace tearless::harness {

struct LineStyle {
  struct Dash {
    std::string_view gnuplot, tikz;
    bool operator==(const Dash&) const = default;
  };
  struct Mark {
    int gnuplot = 0;  // its type of points
    std::string_view pgfplots;
    bool operator==(const Mark&) const = default;
  };

  std::string_view colour;  // RRGGBB
  Dash dash;
  Mark mark;

  bool operator==(const LineStyle&) const = default;
};

/// Of the first 24 measured lines no two have the same colour and dash, so they differ without marks, nor the same dash
/// and mark, so they differ without colour.
LineStyle style_of(size_t line);

/// That of the same line as it is published: the same colour, short dashes and a hollow mark. Each of the first three
/// sources of a figure has its own dashes.
LineStyle published_style_of(size_t line, size_t source);

}  // namespace tearless::harness
