// The formats of figures, by name and by the ending of a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/figure/figure.h"

namespace tearless::harness {

/// How figures are printed in a terminal, and what CSV does with formulas.
struct PrintStyle {
  size_t columns = 80;
  bool colour = false;
  Formulas formulas = Formulas::kAsTheyAre;
};

struct FigureFormat {
  const char* name;
  const char* ending;  // of file names
  std::string (*text)(const std::vector<Figure>&, const PrintStyle&);
  double (*height)(const Figure&) = nullptr;  // in mm, where it goes on a page
  bool is_picture = false;                    // one figure a file
  const char* made_of_svg = nullptr;          // the word by which rsvg-convert makes it of `text`
};

/// UserError, with the nearest name, for any other name.
const FigureFormat& figure_format(const std::string& name);

/// By the ending of a file. UserError for an ending that stands for none.
const FigureFormat& figure_format_of(const std::filesystem::path& file);

}  // namespace tearless::harness
