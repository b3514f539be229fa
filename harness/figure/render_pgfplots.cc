// LaTeX: a float with a picture of pgfplots, its legend below it, the caption and the notes.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/utf8.h"
#include "base/words.h"
#include "harness/figure/drawing.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

// In points. Columns and pages of common two-column styles are a little wider.
constexpr double kColumnInPoints = 219, kPageInPoints = 455;
constexpr double kTextFont = 8, kTickFont = 7;                  // \footnotesize, \scriptsize
constexpr double kTickCharacter = 4.2, kLegendCharacter = 4.6;  // of them
constexpr double kLabelHeight = 14;

/// What lengths about texts are multiplied by.
double scale_of(const Figure& figure) { return figure.font_size.value_or(kTextFont) / kTextFont; }
std::string font_of(const Figure& figure, double font) {
  if (!figure.font_size) return font == kTextFont ? "\\footnotesize" : "\\scriptsize";
  const double size = font * scale_of(figure);
  return fmt::format("\\fontsize{{{:.4g}pt}}{{{:.4g}pt}}\\selectfont", size, 1.2 * size);
}

std::string coordinate(double x, double y) { return fmt::format("({},{})", picture_number(x), picture_number(y)); }

/// Eight on a line of the file, as other programs than TeX should be able to read it, too.
std::string coordinates(const Curve& points) {
  constexpr size_t kInALine = 8;
  std::string text;
  for (size_t i = 0; i < points.size(); ++i)
    text += (i == 0 ? "" : i % kInALine == 0 ? "\n  " : " ") + coordinate(points[i].x, points[i].y);
  return text;
}

/// From left to right above, and back below.
std::string outline(const std::vector<BandPoint>& area) {
  Curve points;
  for (const BandPoint& point : area) points.push_back({point.x, point.high});
  for (size_t i = area.size(); i-- > 0;) points.push_back({area[i].x, area[i].low});
  return coordinates(points);
}

/// "dash pattern=on 8pt off 2.5pt"
std::string tikz_dash(std::string_view dash) {
  if (dash.empty()) return "solid";
  std::string text = "dash pattern=";
  const auto lengths = split_words(dash);
  for (size_t i = 0; i < lengths.size(); ++i)
    text += fmt::format("{}{} {}pt", i == 0 ? "" : " ", i % 2 == 0 ? "on" : "off", lengths[i]);
  return text;
}

std::string style_definitions(const Drawing& drawing) {
  std::map<size_t, LineStyle> lines;
  for (const DrawnPanel& panel : drawing.panels) {
    for (const DrawnLine& line : panel.lines) lines.emplace(line.index, line.style);
  }
  std::string text;
  for (const auto& [index, style] : lines) {
    text += fmt::format(
        "\\definecolor{{line{0}}}{{HTML}}{{{1}}}\n"
        "\\tikzset{{line {0}/.style={{line{0}, line width=0.8pt, {2}}}, band {0}/.style={{draw=none, "
        "fill=line{0}, "
        "fill opacity={4}}},\n  marks {0}/.style={{only marks, solid, line{0}, mark size=1.6pt, {3}}}}}\n",
        index, style.colour, tikz_dash(style.dash), style.mark.pgfplots, style.fill);
  }
  return text +
         "\\tikzset{limit/.style={gray, dashed}, diverged/.style={only marks, solid, mark=x, mark size=3pt, line "
         "width=1.2pt}}\n";
}

std::string axis_options(const char* name, const DrawnAxis& axis) {
  std::vector<std::string> at, labels;
  for (const DrawnAxis::Tick& tick : axis.ticks) {
    at.push_back(picture_number(tick.at));
    labels.push_back(fmt::format("{{{}}}", latex_of(tick.label)));
  }
  return fmt::format("{0}mode={1}, {0}min={2}, {0}max={3}, {0}tick={{{4}}}, {0}ticklabels={{{5}}}", name,
                     axis.is_log ? "log" : "linear", picture_number(axis.low), picture_number(axis.high),
                     fmt::join(at, ","), fmt::join(labels, ","));
}

/// In points.
double line_width(const Figure& figure) {
  constexpr double kPointsOfAMm = 72.27 / 25.4;
  if (figure.own_width) return *figure.own_width * kPointsOfAMm;
  return figure.width == TableSpec::Width::kPage ? kPageInPoints : kColumnInPoints;
}

/// The same in the words of TeX.
std::string line_width_text(const Figure& figure) {
  return figure.own_width ? fmt::format("{:.6g}mm", *figure.own_width) : "\\linewidth";
}

struct Sizes {
  double beside, width, height, left, right, between_rows;  // of a panel's axes, and what is about them; in points
};

Sizes sizes_of(const Figure& figure, const Drawing& drawing) {
  constexpr double kShape = 0.6, kMinHeight = 60, kMaxHeight = 190;
  constexpr double kAllRows = 460, kBetweenRows = 36;  // with a legend and a caption they fit a page
  double numbers = 0, last_number = 0, slanting = 0;
  const double scale = scale_of(figure), tick_character = kTickCharacter * scale;
  for (const DrawnPanel& panel : drawing.panels) {
    numbers = std::max(numbers, panel.y.width());
    if (!panel.x.is_of_labels) last_number = std::max(last_number, panel.x.width());
    if (panel.x.is_slanting) slanting = panel.x.width() * tick_character * kSlant;
  }
  const double left = std::max(numbers * tick_character + kLabelHeight * scale + 6, slanting);
  const double right = last_number * tick_character / 2;
  const auto columns = static_cast<double>(drawing.columns);
  const double beside = columns * left + (columns - 1) * right / 2 + right;
  const double width = (line_width(figure) - beside) / columns;
  const double height = std::clamp(
      std::min(width * kShape, kAllRows / static_cast<double>(drawing.rows()) - kBetweenRows * scale - slanting),
      kMinHeight, kMaxHeight);
  return {beside, width, height, left, right, kBetweenRows * scale + slanting};
}

/// What all panels have, one option on a line of the file.
std::string common_options(const Figure& figure, const Drawing& drawing) {
  const auto [beside, width, height, left, right, between_rows] = sizes_of(figure, drawing);
  std::string text = fmt::format(
      "  scale only axis, width={{({}-{:.0f}pt)/{}}}, height={:.0f}pt,\n"
      "  axis lines*=left, tick align=outside, tick pos=left, scaled ticks=false, xminorticks=false, "
      "yminorticks=false,\n"
      "  grid=major, grid style={{black!10, line width=0.4pt}}, clip mode=individual,\n"
      "  xlabel near ticks, ylabel near ticks, tick label style={{font={}}}, label "
      "style={{font={}, "
      "align=center}},\n"
      "  ylabel style={{text width={:.0f}pt}}, title style={{font={}, align=center, text width={:.0f}pt}}",
      line_width_text(figure), beside, drawing.columns, height, font_of(figure, kTickFont), font_of(figure, kTextFont),
      std::max(height, 80.0), font_of(figure, kTextFont), width);
  if (drawing.panels.size() > 1) {
    text += fmt::format(",\n  group style={{group size={} by {}, horizontal sep={:.0f}pt, vertical sep={:.0f}pt}}",
                        drawing.columns, drawing.rows(), left + right / 2, between_rows);
  }
  if (const DrawnAxis& x = drawing.panels.front().x; x.is_slanting) {
    text += ",\n  xticklabel style={rotate=45, anchor=north east, inner sep=2pt}, xmajorgrids=false";
  } else if (x.is_of_labels) {
    text += fmt::format(",\n  xticklabel style={{text width={:.0f}pt, align=center}}, xmajorgrids=false",
                        width / static_cast<double>(x.ticks.size()));
  }
  return text;
}

std::string panel_options(const Figure& figure, const Drawing& drawing, size_t index) {
  const DrawnPanel& panel = drawing.panels[index];
  std::string text = "  " + axis_options("x", panel.x) + ",\n  " + axis_options("y", panel.y);
  if (!panel.title.text.empty()) text += fmt::format(",\n  title={{{}}}", latex_of(panel.title));
  if (drawing.is_lowest(index)) text += fmt::format(",\n  xlabel={{{}}}", latex_of(figure.x));
  return text + fmt::format(",\n  ylabel={{{}}}", latex_of(panel.y_label));
}

std::string plots_of(const DrawnPanel& panel) {
  if (panel.lines.empty()) return "\\node at (rel axis cs:0.5,0.5) {\\footnotesize no finite value};\n";
  std::string text;
  const auto add = [&](const std::string& style, const std::string& points, const char* end = "") {
    text += fmt::format("\\addplot[{}] coordinates {{\n  {}}}{};\n", style, points, end);
  };
  for (const double x : panel.at_x) add("limit", coordinates({{x, panel.y.low}, {x, panel.y.high}}));
  for (const double y : panel.at_y) add("limit", coordinates({{panel.x.low, y}, {panel.x.high, y}}));
  for (const DrawnLine& line : panel.lines) {
    for (const auto& area : line.areas) add(fmt::format("band {}", line.index), outline(area), " -- cycle");
  }
  for (const DrawnLine& line : panel.lines) {
    for (const std::vector<BandPoint>& stretch : line.stretches) {
      Curve means;
      for (const BandPoint& point : stretch) means.push_back({point.x, point.mean});
      add(fmt::format("line {}{}", line.index, is_dashed(stretch) ? ", " + tikz_dash(kFewerDash) : ""),
          coordinates(means));
    }
    if (!line.marks.empty()) add(fmt::format("marks {}", line.index), coordinates(line.marks));
  }
  for (const DrawnLine& line : panel.lines) {
    if (!line.diverged.empty()) add(fmt::format("diverged, line{}", line.index), coordinates(line.diverged));
  }
  return text;
}

constexpr double kLegendSample = 18, kLegendGap = 14;  // and between columns

size_t columns_of_legend(const Figure& figure, const Drawing& drawing) {
  const double character = kLegendCharacter * scale_of(figure);
  return legend_columns(drawing, line_width(figure) / character, (kLegendSample + kLegendGap + 4) / character);
}

/// Where the legend stands in a panel; nullopt: below them.
std::optional<Corner> corner_of_legend(const Figure& figure, const Drawing& drawing) {
  constexpr double kAbout = 10, kLine = 10;
  if (!figure.legend_inside || drawing.legend.empty()) return std::nullopt;
  const Sizes sizes = sizes_of(figure, drawing);
  const double scale = scale_of(figure);
  const double width = kLegendSample + kAbout + static_cast<double>(legend_width(drawing)) * kLegendCharacter * scale;
  const double height = kAbout + static_cast<double>(drawing.legend.size()) * kLine * scale;
  return free_corner(drawing, width / sizes.width, height / sizes.height);
}

std::string legend_tabular(const Figure& figure, const Drawing& drawing, size_t columns) {
  const double width = line_width(figure);
  std::vector<std::string> kinds(columns, "l@{\\hspace{4pt}}l");
  const double longest = static_cast<double>(legend_width(drawing)) * kLegendCharacter * scale_of(figure);
  if (columns == 1 && longest > width - kLegendSample - kLegendGap)
    kinds[0] =
        fmt::format("l@{{\\hspace{{4pt}}}}p{{\\dimexpr{}-{:.0f}pt}}", line_width_text(figure), kLegendSample + 6);
  std::string text = fmt::format("{{{}\\begin{{tabular}}{{@{{}}{}@{{}}}}\n", font_of(figure, kTextFont),
                                 fmt::join(kinds, "@{\\hspace{14pt}}"));
  for (size_t i = 0; i < drawing.legend.size(); ++i) {
    const LegendEntry& entry = drawing.legend[i];
    const bool ends = (i + 1) % columns == 0 || i + 1 == drawing.legend.size();
    const char* sample =
        drawing.has_boxes
            ? "\\fill[band {0}] (0,-2.5pt) rectangle ({1:.0f}pt,2.5pt); \\draw[line {0}] (0,-2.5pt) rectangle "
              "({1:.0f}pt,2.5pt);"
            : "\\draw[line {0}] (0,0) -- ({1:.0f}pt,0); \\draw[marks {0}] plot coordinates {{({2:.0f}pt,0)}};";
    text += fmt::format("\\tikz[baseline=-0.6ex]{{{}}} & {}{}\n",
                        fmt::format(fmt::runtime(sample), entry.index, kLegendSample, kLegendSample / 2),
                        latex_of(entry.text), ends ? " \\\\" : " &");
  }
  return text + "\\end{tabular}}\n";
}

}  // namespace

std::string render_pgfplots(const Figure& figure) {
  const Drawing drawing = drawing_of(figure);
  const bool is_page_wide = figure.width == TableSpec::Width::kPage, is_group = drawing.panels.size() > 1;
  const char* environment = is_page_wide ? "figure*" : "figure";
  std::string text = fmt::format("% needs \\usepackage{{pgfplots}}{}\n\\begin{{{}}}\n\\centering\n",
                                 is_group ? " \\usepgfplotslibrary{groupplots}" : "", environment);
  text += "\\pgfplotsset{compat=1.16}\n" + style_definitions(drawing);
  const std::optional<Corner> corner = corner_of_legend(figure, drawing);
  if (corner) {  // its lines are pictures themselves, which TikZ cannot have in another
    text += "\\ifdefined\\tearlesslegend\\else\\newsavebox\\tearlesslegend\\fi\n\\begin{lrbox}{\\tearlesslegend}" +
            legend_tabular(figure, drawing, 1) + "\\end{lrbox}\n";
  }
  text += "\\begin{tikzpicture}\n";
  const std::string common = common_options(figure, drawing);
  if (is_group) text += fmt::format("\\begin{{groupplot}}[\n{}]\n", common);
  for (size_t i = 0; i < drawing.panels.size(); ++i) {
    const std::string options = panel_options(figure, drawing, i);
    text += is_group ? fmt::format("\\nextgroupplot[\n{}]\n", options)
                     : fmt::format("\\begin{{axis}}[\n{},\n{}]\n", common, options);
    text += plots_of(drawing.panels[i]);
    if (corner && corner->panel == i) {
      text += fmt::format(
          "\\node[anchor={} {}, inner sep=3pt] at (rel axis cs:{:d},{:d}) {{\\usebox\\tearlesslegend}};\n",
          corner->is_top ? "north" : "south", corner->is_right ? "east" : "west", corner->is_right, corner->is_top);
    }
  }
  text += fmt::format("\\end{{{}}}\n\\end{{tikzpicture}}\n", is_group ? "groupplot" : "axis");
  if (!corner && !drawing.legend.empty())
    text += "\\par\\smallskip\n" + legend_tabular(figure, drawing, columns_of_legend(figure, drawing));
  text += fmt::format("\\caption{{{}}}\n", latex_of(figure.title));
  if (!figure.name.empty()) text += fmt::format("\\label{{fig:{}}}\n", figure.name);
  if (!drawing.notes.empty()) {
    text += "\\par\\vspace{3pt}\n\\begin{minipage}{\\linewidth}\\raggedright\\footnotesize\n";
    for (const Name& note : drawing.notes) text += latex_of(note) + "\\par\n";
    text += "\\end{minipage}\n";
  }
  return text + fmt::format("\\end{{{}}}\n", environment);
}

double height_of_pgfplots(const Figure& figure) {
  constexpr double kLine = 12, kAboutLegend = 20, kMmOfAPoint = 25.4 / 72.27;
  const Drawing drawing = drawing_of(figure);
  const Sizes sizes = sizes_of(figure, drawing);
  const size_t columns = columns_of_legend(figure, drawing);
  const auto lines_of = [&](const std::string& text) {
    return std::ceil(static_cast<double>(display_width(text)) * kLegendCharacter / line_width(figure));
  };
  double lines = lines_of(figure.title.text);
  const size_t lines_of_legend = (drawing.legend.size() + columns - 1) / columns;
  if (!corner_of_legend(figure, drawing)) lines += scale_of(figure) * static_cast<double>(lines_of_legend);
  for (const Name& note : drawing.notes) lines += lines_of(note.text);
  const double panels = static_cast<double>(drawing.rows()) * (sizes.height + sizes.between_rows);
  return (panels + kAboutLegend + lines * kLine) * kMmOfAPoint;
}

}  // namespace tearless::harness
