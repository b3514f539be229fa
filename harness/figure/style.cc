#include "harness/figure/style.h"

#include <array>

namespace tearless::harness {
namespace {

// Okabe and Ito's colours, which colour-blind readers tell apart, but for the yellow, too pale on white.
constexpr std::array<std::string_view, 7> kColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                      "E69F00", "56B4E9", "000000"};

constexpr std::array<std::string_view, 4> kDashes = {"", "8 2.5", "6 2 1 2", "1 1.5"};
constexpr std::array<std::string_view, 3> kPublishedDashes = {"3 2", "2 2", "3 1.5 1 1.5"};

struct Shape {
  std::string_view filled, hollow;  // of pgfplots
  std::string_view path;
};
constexpr std::array<Shape, 6> kShapes = {
    {{"mark=*", "mark=o", "m-1.7 0a1.7 1.7 0 1 0 3.4 0a1.7 1.7 0 1 0-3.4 0z"},
     {"mark=square*", "mark=square", "m-1.5-1.5h3v3h-3z"},
     {"mark=triangle*", "mark=triangle", "m0-2.1l1.9 3.2h-3.8z"},
     {"mark=diamond*", "mark=diamond", "m0-2.2l1.8 2.2-1.8 2.2-1.8-2.2z"},
     {"mark=triangle*, mark options={rotate=180}", "mark=triangle, mark options={rotate=180}", "m0 2.1l1.9-3.2h-3.8z"},
     {"mark=pentagon*", "mark=pentagon", "m0-1.9l1.8 1.3-.7 2.1h-2.2l-.7-2.1z"}}};

}  // namespace

LineStyle style_of(size_t line) {
  const Shape& shape = kShapes[line % kShapes.size()];
  return {.colour = kColours[line % kColours.size()],
          .dash = kDashes[line / kShapes.size() % kDashes.size()],
          .mark = {shape.filled, shape.path}};
}

LineStyle published_style_of(size_t line, size_t source) {
  const Shape& shape = kShapes[line % kShapes.size()];
  return {.colour = kColours[line % kColours.size()],
          .dash = kPublishedDashes[source % kPublishedDashes.size()],
          .mark = {shape.hollow, shape.path, /*is_hollow=*/true}};
}

}  // namespace tearless::harness
