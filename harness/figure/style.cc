#include "harness/figure/style.h"

#include <array>

namespace tearless::harness {
namespace {

// Okabe and Ito's colours, which colour-blind readers tell apart, but for the yellow, too pale on white.
constexpr std::array<std::string_view, 7> kColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                      "E69F00", "56B4E9", "000000"};

constexpr std::array<LineStyle::Dash, 4> kDashes = {{{"solid", "solid"},
                                                     {"(16,5)", "dash pattern=on 8pt off 2.5pt"},
                                                     {"(12,4,2,4)", "dash pattern=on 6pt off 2pt on 1pt off 2pt"},
                                                     {"(2,3)", "dash pattern=on 1pt off 1.5pt"}}};
constexpr std::array<LineStyle::Dash, 3> kPublishedDashes = {
    {{"(6,4)", "dash pattern=on 3pt off 2pt"},
     {"(4,4)", "dash pattern=on 2pt off 2pt"},
     {"(6,3,2,3)", "dash pattern=on 3pt off 1.5pt on 1pt off 1.5pt"}}};

struct Shape {
  LineStyle::Mark filled, hollow;
};
constexpr std::array<Shape, 6> kShapes = {
    {{{7, "mark=*"}, {6, "mark=o"}},
     {{5, "mark=square*"}, {4, "mark=square"}},
     {{9, "mark=triangle*"}, {8, "mark=triangle"}},
     {{13, "mark=diamond*"}, {12, "mark=diamond"}},
     {{11, "mark=triangle*, mark options={rotate=180}"}, {10, "mark=triangle, mark options={rotate=180}"}},
     {{15, "mark=pentagon*"}, {14, "mark=pentagon"}}}};

}  // namespace

LineStyle style_of(size_t line) {
  return {.colour = kColours[line % kColours.size()],
          .dash = kDashes[line / kShapes.size() % kDashes.size()],
          .mark = kShapes[line % kShapes.size()].filled};
}

LineStyle published_style_of(size_t line, size_t source) {
  return {.colour = kColours[line % kColours.size()],
          .dash = kPublishedDashes[source % kPublishedDashes.size()],
          .mark = kShapes[line % kShapes.size()].hollow};
}

}  // namespace tearless::harness
