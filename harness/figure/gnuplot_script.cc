// SVG, PDF and PNG by way of gnuplot: a script with its data. Panels are plots of their own; all texts beside them and
// the legend are drawn last, in a plot over the whole picture whose units are millimetres, so that they cannot overlap.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "harness/figure/drawing.h"

namespace tearless::harness {
namespace {

// In millimetres; fonts in points. A character of the widest common fonts without serifs takes less than this part of
// their size.
constexpr double kPointInMm = 25.4 / 72, kInch = 25.4;
constexpr double kColumnInMm = 84, kPageInMm = 174;
constexpr double kEdge = 2;  // between the picture's edge and what is in it
constexpr double kFont = 8.5, kNoteFont = 7;
constexpr double kLineHeight = 1.35, kCharacterWidth = 0.58;  // of the font's size
constexpr double kTickGap = 1.5;                              // between an axis and its numbers
constexpr double kSample = 9, kSampleGap = 1.5;               // in the legend: a piece of line, and before its text
constexpr const char* kGrey = "#606060";

double line_height(double font = kFont) { return font * kPointInMm * kLineHeight; }
double character_width(double font = kFont) { return font * kPointInMm * kCharacterWidth; }
double width_of_label(const DrawnAxis::Tick& tick) { return tick.width() * character_width(); }

/// In single quotes, in which gnuplot replaces nothing.
/// In single quotes, in which nothing is run or replaced. gnuplot 5.4 cannot read three of them in a row.
std::string quoted(const std::string& text) {
  if (text.starts_with('\'')) return "(\"'\"." + quoted(text.substr(1)) + ")";
  std::string quoted = "'";
  for (const char c : text) quoted.append(c == '\'' ? 2 : 1, c);
  return quoted + "'";
}

/// Broken between words, or within one that is longer than a line.
std::vector<std::string> wrapped(const std::string& raw, double width, double font = kFont) {
  const auto columns = static_cast<size_t>(std::max(8.0, width / character_width(font)));
  std::vector<std::string> lines;
  std::string rest = printable(raw);
  while (display_width(rest) > columns) {
    const std::string begin = cut_to_width(rest, columns);
    const size_t blank = rest[begin.size()] == ' ' ? begin.size() : begin.rfind(' ');
    const size_t end = blank == std::string::npos || blank == 0 ? begin.size() : blank;
    lines.push_back(rest.substr(0, end));
    rest.erase(0, rest.find_first_not_of(' ', end));
  }
  if (!rest.empty()) lines.push_back(rest);
  return lines;
}

// --- the terminal ----------------------------------------------------------------------------------------------------

struct Terminal {
  Picture kind;

  /// SVG has no points, but pixels of which 96 make an inch.
  double font(double points) const { return kind == Picture::kSvg ? points * 96 / 72 : points; }

  /// The scales make the three alike: the terminals of cairo take points as pixels of 96 an inch, a line of width 1 is
  /// half a point wide in PDF, and dashes and marks have a size of their own in each.
  std::string command(double width, double height) const {
    switch (kind) {
      case Picture::kSvg:
        return fmt::format(
            "set terminal svg noenhanced size {:.0f},{:.0f} font 'Helvetica,{:.2f}' background rgb 'white'",
            width / kInch * 96, height / kInch * 96, font(kFont));
      case Picture::kPdf:
        return fmt::format(
            "set terminal pdfcairo noenhanced size {:.2f}cm,{:.2f}cm font 'Helvetica,{}' fontscale 0.75 "
            "linewidth 1.5 dashlength 1.4 pointscale 1.25 background rgb 'white'",
            width / 10, height / 10, kFont);
      case Picture::kPng: {
        constexpr double kDotsPerInch = 300;
        return fmt::format(
            "set terminal pngcairo noenhanced size {:.0f},{:.0f} font 'Helvetica,{}' fontscale {:.3f} "
            "linewidth {:.3f} pointscale {:.3f} dashlength 1.9 background rgb 'white'",
            width / kInch * kDotsPerInch, height / kInch * kDotsPerInch, kFont, kDotsPerInch / 96, kDotsPerInch / 96,
            kDotsPerInch / 96 * 1.5);
      }
    }
    return "";
  }
};

// --- the page --------------------------------------------------------------------------------------------------------

/// Where everything is, in millimetres from the left and from the top.
struct Page {
  struct Text {
    std::string text;
    double x, y;  // of its left end or middle, and of the middle of its height
    enum { kLeft, kMiddle, kRight, kUpwards } how;
    double font = kFont;
  };
  struct Frame {
    double left, right, top, bottom;
  };
  struct Sample {
    LegendEntry entry;
    double x, y;
  };

  double width, height = kEdge;
  std::vector<Frame> frames = {};  // of the panels' axes
  std::vector<Text> texts = {};
  std::vector<Sample> samples = {};

  double inner() const { return width - 2 * kEdge; }

  /// One line below the other, from `top` on.
  void add(const std::vector<std::string>& lines, double x, double top, decltype(Text::how) how, double font = kFont) {
    for (size_t i = 0; i < lines.size(); ++i)
      texts.push_back({lines[i], x, top + (static_cast<double>(i) + 0.5) * line_height(font), how, font});
  }
};

double height_of(const std::vector<std::string>& lines, double font = kFont) {
  return static_cast<double>(lines.size()) * line_height(font);
}

void place_panels(const Figure& figure, const Drawing& drawing, Page& page) {
  constexpr double kShape = 0.55, kMinHeight = 34, kMaxHeight = 74;  // of a plot's axes: height by width
  constexpr double kGap = 3;                                         // between panels
  const double cell = page.inner() / static_cast<double>(drawing.columns);
  const double label_height = std::clamp(cell * kShape * 0.8, kMinHeight, kMaxHeight);
  double numbers = 0, hangs_over = 1;
  size_t label_lines = 0;
  for (const DrawnPanel& panel : drawing.panels) {
    for (const DrawnAxis::Tick& tick : panel.y.ticks) numbers = std::max(numbers, width_of_label(tick));
    for (const DrawnAxis::Tick& tick : panel.x.ticks) hangs_over = std::max(hangs_over, width_of_label(tick) / 2);
    label_lines = std::max(label_lines, wrapped(panel.y_label.text, label_height).size());
  }
  const double left = static_cast<double>(label_lines) * line_height() + kTickGap + numbers + kTickGap;
  const double plot_width = cell - left - hangs_over;
  const double plot_height = std::clamp(plot_width * kShape, kMinHeight, kMaxHeight);
  const std::vector<std::string> x_label = wrapped(figure.x.text, plot_width);
  for (size_t begin = 0; begin < drawing.panels.size(); begin += drawing.columns) {
    const size_t end = std::min(begin + drawing.columns, drawing.panels.size());
    double titles = 0;
    for (size_t i = begin; i < end; ++i)
      titles = std::max(titles, height_of(wrapped(drawing.panels[i].title.text, plot_width)));
    const double top = page.height + std::max(titles, 1.0), bottom = top + plot_height;
    double labels_end = bottom + kTickGap + line_height();
    for (size_t i = begin; i < end; ++i) {
      const DrawnPanel& panel = drawing.panels[i];
      const double x = kEdge + static_cast<double>(i - begin) * cell + left, middle = x + plot_width / 2;
      page.frames.push_back({x, x + plot_width, top, bottom});
      const std::vector<std::string> title = wrapped(panel.title.text, plot_width);
      page.add(title, middle, top - height_of(title), Page::Text::kMiddle);
      for (const DrawnAxis::Tick& tick : panel.x.ticks) {
        page.texts.push_back({tick.label.text, x + panel.x.position(tick.at) * plot_width,
                              bottom + kTickGap + line_height() / 2, Page::Text::kMiddle});
      }
      for (const DrawnAxis::Tick& tick : panel.y.ticks) {
        page.texts.push_back(
            {tick.label.text, x - kTickGap, bottom - panel.y.position(tick.at) * plot_height, Page::Text::kRight});
      }
      const std::vector<std::string> label = wrapped(panel.y_label.text, label_height);
      for (size_t line = 0; line < label.size(); ++line) {
        page.texts.push_back({label[line], x - left + (static_cast<double>(line) + 0.5) * line_height(),
                              (top + bottom) / 2, Page::Text::kUpwards});
      }
      if (drawing.is_lowest(i)) {
        page.add(x_label, middle, bottom + kTickGap + line_height(), Page::Text::kMiddle);
        labels_end = bottom + kTickGap + line_height() + height_of(x_label);
      }
    }
    page.height = labels_end + (end < drawing.panels.size() ? kGap : 0);
  }
}

void place_legend(const Drawing& drawing, Page& page) {
  if (drawing.legend.empty()) return;
  constexpr double kGap = 1.5, kBetweenColumns = 3;
  const double beside = kSample + kSampleGap + kBetweenColumns;
  const size_t columns = legend_columns(drawing, page.inner() / character_width(), beside / character_width());
  const double column = page.inner() / static_cast<double>(columns);
  page.height += kGap;
  for (size_t begin = 0; begin < drawing.legend.size(); begin += columns) {
    double height = 0;
    for (size_t i = begin; i < std::min(begin + columns, drawing.legend.size()); ++i) {
      const double x = kEdge + static_cast<double>(i - begin) * column;
      const std::vector<std::string> lines = wrapped(drawing.legend[i].text.text, column - kSample - kSampleGap);
      page.samples.push_back({drawing.legend[i], x, page.height + line_height() / 2});
      page.add(lines, x + kSample + kSampleGap, page.height, Page::Text::kLeft);
      height = std::max(height, height_of(lines));
    }
    page.height += height;
  }
}

Page page_of(const Figure& figure, const Drawing& drawing) {
  Page page{.width = figure.width == TableSpec::Width::kPage ? kPageInMm : kColumnInMm};
  const auto add_lines = [&](const std::string& text, double font) {
    const std::vector<std::string> lines = wrapped(text, page.inner(), font);
    page.add(lines, kEdge, page.height, Page::Text::kLeft, font);
    page.height += height_of(lines, font);
  };
  add_lines(figure.title.text, kFont);
  page.height += 1;
  place_panels(figure, drawing, page);
  place_legend(drawing, page);
  page.height += 1;
  for (const std::string& note : drawing.notes) add_lines(note, kNoteFont);
  page.height += kEdge;
  return page;
}

// --- data ------------------------------------------------------------------------------------------------------------

/// Several lines of points, with blank lines between them. `row` makes one of a point.
template <typename Lines, typename Row>
std::string data_block(const std::string& name, const Lines& lines, const Row& row) {
  std::string text = name + " << EOD\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\n";
    for (const auto& point : lines[i]) text += row(point) + "\n";
  }
  return text + "EOD\n";
}

std::string row_of(const CurvePoint& point) { return picture_number(point.x) + " " + picture_number(point.y); }
std::string row_of_mean(const BandPoint& point) { return row_of(CurvePoint{point.x, point.mean}); }
std::string row_of_band(const BandPoint& point) {
  return fmt::format("{} {} {}", picture_number(point.x), picture_number(point.low), picture_number(point.high));
}

std::string block(const char* what, size_t panel, const DrawnLine& line) {
  return fmt::format("${}_{}_{}", what, panel, line.index);
}

std::string data_of(const Drawing& drawing) {
  std::string text;
  for (size_t i = 0; i < drawing.panels.size(); ++i) {
    for (const DrawnLine& line : drawing.panels[i].lines) {
      if (!line.bands.empty()) text += data_block(block("band", i, line), line.bands, row_of_band);
      if (!line.stretches.empty()) text += data_block(block("line", i, line), line.stretches, row_of_mean);
      if (!line.marks.empty()) text += data_block(block("marks", i, line), std::vector<Curve>{line.marks}, row_of);
      if (!line.diverged.empty())
        text += data_block(block("diverged", i, line), std::vector<Curve>{line.diverged}, row_of);
    }
  }
  return text;
}

// --- plots -----------------------------------------------------------------------------------------------------------

std::string with_line(const LineStyle& style) {
  return fmt::format("with lines lw 1.4 lc rgb '#{}' dt {}", style.colour, style.dash.gnuplot);
}
std::string with_marks(const LineStyle& style) {
  return fmt::format("with points pt {} ps 0.55 lw 0.9 lc rgb '#{}'", style.mark.gnuplot, style.colour);
}

std::string axis_commands(const char* name, const DrawnAxis& axis) {
  std::vector<std::string> ticks;
  for (const DrawnAxis::Tick& tick : axis.ticks) ticks.push_back("'' " + picture_number(tick.at));
  return fmt::format("{0}set logscale {1}\nset {1}range [{2}:{3}]\nset {1}tics ({4})\n", axis.is_log ? "" : "un", name,
                     picture_number(axis.low), picture_number(axis.high), fmt::join(ticks, ", "));
}

std::string margins(const Page& page, const Page::Frame& frame) {
  return fmt::format(
      "set lmargin at screen {:.5f}; set rmargin at screen {:.5f}; set bmargin at screen {:.5f}; set tmargin at screen "
      "{:.5f}\n",
      frame.left / page.width, frame.right / page.width, 1 - frame.bottom / page.height, 1 - frame.top / page.height);
}

std::string panel_commands(const DrawnPanel& panel, size_t index, const Page& page) {
  std::string text = fmt::format("\n# panel {}\n", index + 1);  // its title could end in a backslash
  text += margins(page, page.frames[index]) + axis_commands("x", panel.x) + axis_commands("y", panel.y);
  const std::string dashed = fmt::format("nohead back lw 1.2 dt (4,4) lc rgb '{}'", kGrey);
  for (const double x : panel.at_x)
    text += fmt::format("set arrow from first {0}, graph 0 to first {0}, graph 1 {1}\n", picture_number(x), dashed);
  for (const double y : panel.at_y)
    text += fmt::format("set arrow from graph 0, first {0} to graph 1, first {0} {1}\n", picture_number(y), dashed);
  std::vector<std::string> plots;
  const auto add = [&](const char* what, const DrawnLine& line, bool is_there, const std::string& style) {
    if (is_there) plots.push_back(block(what, index, line) + " " + style);
  };
  for (const DrawnLine& line : panel.lines) {
    add("band", line, !line.bands.empty(),
        fmt::format("using 1:2:3 with filledcurves lc rgb '#{}' fs transparent solid 0.15 noborder",
                    line.style.colour));
  }
  for (const DrawnLine& line : panel.lines) {
    add("line", line, !line.stretches.empty(), with_line(line.style));
    add("marks", line, !line.marks.empty(), with_marks(line.style));
  }
  for (const DrawnLine& line : panel.lines) {
    add("diverged", line, !line.diverged.empty(),
        fmt::format("with points pt 2 ps 0.9 lw 2 lc rgb '#{}'", line.style.colour));
  }
  if (panel.lines.empty()) {
    text += "set label 'no finite value' at graph 0.5, graph 0.5 center\n";
    plots.emplace_back("NaN");
  }
  return text + fmt::format("plot {}\nunset arrow\nunset label\n", fmt::join(plots, ", \\\n     "));
}

/// Texts and legend, in millimetres from the top left corner.
std::string page_commands(const Page& page, const Terminal& terminal) {
  std::string text = "\n# texts and legend\n" + margins(page, {0, page.width, 0, page.height});
  text +=
      fmt::format("unset logscale\nunset tics\nunset grid\nunset border\nset xrange [0:{0}]\nset yrange [{1:.3f}:0]\n",
                  page.width, page.height);
  constexpr const char* kHow[] = {"left", "center", "right", "center rotate by 90"};
  for (const Page::Text& label : page.texts) {
    text += fmt::format("set label {} at {:.3f}, {:.3f} {} font ',{:.4g}'\n", quoted(label.text), label.x, label.y,
                        kHow[label.how], terminal.font(label.font));
  }
  std::string data;
  std::vector<std::string> plots;
  for (const auto& [entry, x, y] : page.samples) {
    const std::string name = fmt::format("$legend_{}", entry.index);
    data += fmt::format("{} << EOD\n{:.3f} {:.3f}\n{:.3f} {:.3f}\n{:.3f} {:.3f}\nEOD\n", name, x, y, x + kSample / 2, y,
                        x + kSample, y);
    plots.push_back(name + " " + with_line(entry.style));
    plots.push_back(name + " every ::1::1 " + with_marks(entry.style));
  }
  if (plots.empty()) plots.emplace_back("NaN");
  return text + data + fmt::format("plot {}\n", fmt::join(plots, ", \\\n     "));
}

}  // namespace

std::string gnuplot_script(const Figure& figure, Picture kind, const std::string& file) {
  const Drawing drawing = drawing_of(figure);
  const Page page = page_of(figure, drawing);
  const Terminal terminal{kind};
  std::string text = "# Draws " + printable(file) + ": gnuplot THIS_FILE\nreset\nset encoding utf8\n";
  text += terminal.command(page.width, page.height) + "\nset output " + quoted(file) + "\n";
  text +=
      "set key off\nset border 3 lw 0.8 lc rgb '#606060'\nset tics nomirror out scale 0.4 textcolor rgb 'black'\n"
      "set grid lw 0.6 lt 1 lc rgb '#e4e4e4'\n";
  text += data_of(drawing) + "set multiplot\n";
  for (size_t i = 0; i < drawing.panels.size(); ++i) text += panel_commands(drawing.panels[i], i, page);
  return text + page_commands(page, terminal) + "unset multiplot\nunset output\n";
}

}  // namespace tearless::harness
