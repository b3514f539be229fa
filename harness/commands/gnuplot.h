// Pictures that gnuplot draws.
#pragma once

#include <filesystem>

#include "harness/figure/figure.h"

namespace tearless::harness {

/// Draws the figure as `file`, and writes the script beside it, `file`.gnuplot. UserError, with both as they were, if
/// gnuplot is not installed, cannot draw it, or the folder cannot be written.
void draw_picture(const Figure& figure, Picture kind, const std::filesystem::path& file);

}  // namespace tearless::harness
