// How the lines of a picture are told apart: by colour, by dash and by mark. Internal to harness/figure.
#pragma once

#include <cstddef>
#include <string_view>

namespace tearless::harness {

struct LineStyle {
  struct Mark {
    std::string_view pgfplots;
    std::string_view path;  // of SVG, from its middle; in points
    bool is_hollow = false;
    bool operator==(const Mark&) const = default;
  };

  std::string_view colour;  // RRGGBB
  std::string_view dash;    // "8 2.5": points that are drawn, and that are not; "": solid
  Mark mark;
  double fill = 0.15;  // how opaque areas are

  bool operator==(const LineStyle&) const = default;
};

/// That of lines where they are the mean of fewer runs: dashes further apart than those of any whole line.
inline constexpr std::string_view kFewerDash = "2 4";

/// Of the first 24 measured lines no two have the same colour and dash, so they differ without marks, nor the same dash
/// and mark, so they differ without colour.
LineStyle style_of(size_t line);

/// That of the same line as it is published: the same colour, short dashes and a hollow mark. Each of the first three
/// sources of a figure has its own dashes.
LineStyle published_style_of(size_t line, size_t source);

}  // namespace tearless::harness
