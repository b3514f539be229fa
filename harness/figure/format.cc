#include "harness/figure/format.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"

namespace tearless::harness {
namespace {

using Figures = std::vector<Figure>;

template <class Render>
std::string one_below_the_other(const Figures& figures, const Render& render) {
  std::string text;
  for (const Figure& figure : figures) {
    if (!text.empty()) text += "\n";
    text += render(figure);
  }
  return text;
}

std::string all_as_text(const Figures& figures, const PrintStyle& style) {
  return one_below_the_other(figures,
                             [&](const Figure& figure) { return render_text(figure, style.columns, style.colour); });
}
std::string all_as_csv(const Figures& figures, const PrintStyle& style) { return render_csv(figures, style.formulas); }
std::string all_as_json(const Figures& figures, const PrintStyle&) { return json_text(json_of(figures)); }
std::string all_as_pgfplots(const Figures& figures, const PrintStyle&) {
  return one_below_the_other(figures, render_pgfplots);
}

std::string as_svg(const Figures& figures, const PrintStyle&) { return render_svg(figures.front()); }

constexpr FigureFormat kFormats[] = {
    {"text", ".txt", all_as_text},
    {"csv", ".csv", all_as_csv},
    {"json", ".json", all_as_json},
    {"pgfplots", ".tex", all_as_pgfplots, height_of_pgfplots},
    {"svg", ".svg", as_svg, height_of_svg, /*is_picture=*/true},
    {"pdf", ".pdf", as_svg, height_of_svg, true, "pdf"},
    {"png", ".png", as_svg, height_of_svg, true, "png"},
};

}  // namespace

const FigureFormat& figure_format(const std::string& name) {
  std::vector<std::string> names;
  for (const FigureFormat& format : kFormats) {
    if (name == format.name) return format;
    names.emplace_back(format.name);
  }
  fail("--format {} is not known{}; it must be one of: {}", name, did_you_mean(name, names), fmt::join(names, ", "));
}

const FigureFormat& figure_format_of(const std::filesystem::path& file) {
  std::vector<std::string> endings;
  for (const FigureFormat& format : kFormats) {
    if (file.extension() == format.ending) return format;
    endings.emplace_back(format.ending);
  }
  fail("--out {}: its ending stands for no format of figures; choose one of {}, or add --format", file.string(),
       fmt::join(endings, ", "));
}

}  // namespace tearless::harness
