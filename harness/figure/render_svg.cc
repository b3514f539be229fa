// SVG, with the same bytes on every machine: no font is read, widths of texts are estimates. Positions are in points of
// 1/72 inch from the top left corner.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "harness/figure/drawing.h"

namespace tearless::harness {
namespace {

constexpr double kMm = 72 / 25.4;
constexpr double kEdge = 5.5;             // between the picture's edge and what is in it
constexpr double kBigPoint = 72 / 72.27;  // a point of TeX, as grids have it, in points of SVG
constexpr double kFont = 8.5, kNoteFont = 7;
// Of the font's size. A character of the widest common fonts without serifs takes less than this.
constexpr double kLineHeight = 1.35, kCharacterWidth = 0.58, kBaseline = 0.36;
constexpr double kTickGap = 4;                               // between an axis and its numbers
constexpr double kSample = 25, kBox = 12, kSampleGap = 4.5;  // in the legend: a piece of line, and before its text
constexpr double kPadding = 4;                               // about a legend in a panel
constexpr const char* kGrey = "#606060";

double line_height(double font = kFont) { return font * kLineHeight; }
double character_width(double font = kFont) { return font * kCharacterWidth; }

/// Broken between words, or within one that is longer than a line.
std::vector<std::string> lines_within(const std::string& raw, double width, double font = kFont) {
  return wrapped(printable(raw), static_cast<size_t>(std::max(2.0, width / character_width(font))));
}

double height_of(const std::vector<std::string>& lines, double font = kFont) {
  return static_cast<double>(lines.size()) * line_height(font);
}

/// With two decimals at most.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&' || c == '<' || c == '>') {
      escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string path(const std::string& data, const std::string& attributes) {
  return data.empty() ? "" : fmt::format("<path d=\"{}\" {}/>\n", data, attributes);
}
std::string stroke(std::string_view colour, double width, std::string_view dash = "") {
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}", colour, width,
                     dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash));
}
std::string colour_of(const LineStyle& style) { return fmt::format("#{}", style.colour); }
std::string stroke(const LineStyle& style, bool is_of_fewer = false) {
  return stroke(colour_of(style), 1, is_of_fewer ? kFewerDash : style.dash) + " stroke-linejoin=\"round\"";
}
std::string fill(const LineStyle& style) {
  return fmt::format("fill=\"{}\" fill-opacity=\"{}\"", colour_of(style), style.fill);
}
/// Marks at places "M1 2".
std::string marks(const std::vector<std::string>& places, const LineStyle& style) {
  std::string data;
  for (const std::string& place : places) data += place + std::string(style.mark.path);
  const std::string colour = colour_of(style);
  return path(data, fmt::format("fill=\"{}\" stroke=\"{}\" stroke-width=\"0.7\"",
                                style.mark.is_hollow ? "#ffffff" : colour, colour));
}

/// Places what it is given from top to bottom, in `body`.
class Page {
 public:
  Page(const Figure& figure, const Drawing& drawing)
      : scale_(figure.font_size ? *figure.font_size * kBigPoint / kFont : 1),
        width_(width_of(figure) * kMm / scale_),
        drawing_(drawing) {
    if (figure.caption_in_picture) add_lines(figure.title.text, kFont);
    y_ += 3;
    add_panels(figure);
    if (!has_legend_) add_legend();
    y_ += 3;
    for (const Name& note : drawing.notes) add_lines(note.text, kNoteFont);
    y_ += kEdge;
  }

  double height_in_mm() const { return y_ * scale_ / kMm; }

  std::string svg() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}mm\" height=\"{1}mm\" viewBox=\"0 0 {2} {3}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{4}\">\n"
        "<rect width=\"{2}\" height=\"{3}\" fill=\"#ffffff\"/>\n{5}</svg>\n",
        number(width_ * scale_ / kMm), number(height_in_mm()), number(width_), number(y_), kFont, body_);
  }

 private:
  enum How { kLeft, kMiddle, kRight };

  double inner() const { return width_ - 2 * kEdge; }

  /// The middle of its height is at y. `turned`: by so many degrees about that place.
  void add_text(const std::string& text, double x, double y, How how, double font = kFont, int turned = 0) {
    constexpr const char* kAnchors[] = {"start", "middle", "end"};
    std::string attributes =
        fmt::format("x=\"{}\" y=\"{}\" text-anchor=\"{}\"", number(x), number(y + font * kBaseline), kAnchors[how]);
    if (font != kFont) attributes += fmt::format(" font-size=\"{}\"", font);
    if (turned != 0) attributes += fmt::format(" transform=\"rotate({} {} {})\"", turned, number(x), number(y));
    body_ += fmt::format("<text {}>{}</text>\n", attributes, escaped(text));
  }
  /// One below the other, from `top` on.
  void add_texts(const std::vector<std::string>& lines, double x, double top, How how, double font = kFont) {
    for (size_t i = 0; i < lines.size(); ++i)
      add_text(lines[i], x, top + (static_cast<double>(i) + 0.5) * line_height(font), how, font);
  }
  void add_lines(const std::string& text, double font) {
    const std::vector<std::string> lines = lines_within(text, inner(), font);
    add_texts(lines, kEdge, y_, kLeft, font);
    y_ += height_of(lines, font);
  }

  struct Frame {
    double left, top, width, height;

    double x(const DrawnPanel& panel, double value) const { return panel.x.position(value) * width; }
    double y(const DrawnPanel& panel, double value) const { return (1 - panel.y.position(value)) * height; }
    /// "M1 2", from its top left corner.
    std::string place(const DrawnPanel& panel, double x_value, double y_value, char command = 'M') const {
      return fmt::format("{}{} {}", command, number(x(panel, x_value)), number(y(panel, y_value)));
    }
  };

  void add_panels(const Figure& figure) {
    constexpr double kShape = 0.55, kMinHeight = 96, kMaxHeight = 210;  // of a plot's axes: height by width
    constexpr double kGap = 8.5;                                        // between panels
    constexpr double kMaxSlanting = 24 * kFont * kCharacterWidth;
    const double cell = inner() / static_cast<double>(drawing_.columns);
    const double label_height = std::clamp(cell * kShape * 0.8, kMinHeight, kMaxHeight);
    const DrawnAxis& x_axis = drawing_.panels.front().x;
    const double longest = x_axis.width() * character_width();
    double numbers = 0;
    size_t label_lines = 0;
    for (const DrawnPanel& panel : drawing_.panels) {
      numbers = std::max(numbers, panel.y.width() * character_width());
      label_lines = std::max(label_lines, lines_within(panel.y_label.text, label_height).size());
    }
    const double beside = static_cast<double>(label_lines) * line_height() + 2 * kTickGap + numbers;
    const double slanting = x_axis.is_slanting ? std::min(longest, kMaxSlanting) * kSlant : 0;
    const auto labels = static_cast<double>(x_axis.ticks.size());
    const double left =
        std::max(beside, slanting - (cell - slanting) / labels / 2);  // the first label is half a label's part inside
    const double hangs_over = x_axis.is_of_labels ? 1 : std::max(3.0, longest / 2);
    const double plot_width = cell - left - hangs_over;
    const double plot_height = std::clamp(plot_width * kShape, kMinHeight, kMaxHeight);
    const double label_width = x_axis.is_slanting    ? kMaxSlanting
                               : x_axis.is_of_labels ? plot_width / labels
                                                     : plot_width;
    double ticks_height = line_height();
    for (const DrawnAxis::Tick& tick : x_axis.ticks) {
      const double height = height_of(lines_within(tick.label.text, label_width));
      ticks_height = std::max(ticks_height, height);
    }
    if (x_axis.is_slanting) ticks_height = slanting + ticks_height * kSlant;
    const std::vector<std::string> x_label = lines_within(figure.x.text, plot_width);
    const double legend = sample() + kSampleGap + static_cast<double>(legend_width(drawing_) + 1) * character_width();
    const double legend_height = static_cast<double>(drawing_.legend.size()) * line_height();
    std::optional<Corner> corner;
    if (figure.legend_inside && !drawing_.legend.empty()) {
      corner =
          free_corner(drawing_, (legend + 2 * kPadding) / plot_width, (legend_height + 2 * kPadding) / plot_height);
    }
    has_legend_ = corner.has_value();
    for (size_t begin = 0; begin < drawing_.panels.size(); begin += drawing_.columns) {
      const size_t end = std::min(begin + drawing_.columns, drawing_.panels.size());
      double titles = 3;
      for (size_t i = begin; i < end; ++i)
        titles = std::max(titles, height_of(lines_within(drawing_.panels[i].title.text, plot_width)));
      const double top = y_ + titles, bottom = top + plot_height, below = bottom + kTickGap;
      y_ = below + ticks_height;
      for (size_t i = begin; i < end; ++i) {
        const DrawnPanel& panel = drawing_.panels[i];
        const Frame frame = {kEdge + static_cast<double>(i - begin) * cell + left, top, plot_width, plot_height};
        const double middle = frame.left + plot_width / 2;
        const std::vector<std::string> title = lines_within(panel.title.text, plot_width);
        add_texts(title, middle, top - height_of(title) - 1, kMiddle);
        add_plot(panel, frame);
        if (corner && corner->panel == i) {
          double y = corner->is_top ? top + kPadding : bottom - kPadding - legend_height;
          for (const LegendEntry& entry : drawing_.legend)
            y += add_entry(entry, frame.left + (corner->is_right ? plot_width - kPadding - legend : kPadding), y,
                           legend);
        }
        for (const DrawnAxis::Tick& tick : panel.x.ticks) {
          const double x = frame.left + frame.x(panel, tick.at);
          const std::vector<std::string> lines = lines_within(tick.label.text, label_width);
          if (!panel.x.is_slanting) add_texts(lines, x, below, kMiddle);
          for (size_t line = 0; panel.x.is_slanting && line < lines.size(); ++line)
            add_text(lines[line], x + static_cast<double>(line) * line_height() / kSlant, below + 2, kRight, kFont,
                     -45);
        }
        for (const DrawnAxis::Tick& tick : panel.y.ticks)
          add_text(tick.label.text, frame.left - kTickGap, top + frame.y(panel, tick.at), kRight);
        const std::vector<std::string> label = lines_within(panel.y_label.text, label_height);
        for (size_t line = 0; line < label.size(); ++line) {
          add_text(label[line], frame.left - beside + (static_cast<double>(line) + 0.5) * line_height(),
                   (top + bottom) / 2, kMiddle, kFont, -90);
        }
        if (!drawing_.is_lowest(i)) continue;
        add_texts(x_label, middle, below + ticks_height, kMiddle);
        y_ = below + ticks_height + height_of(x_label);
      }
      if (end < drawing_.panels.size()) y_ += kGap;
    }
  }

  /// What may leave the plot is in an <svg> of its own, which ends at its edges.
  void add_plot(const DrawnPanel& panel, const Frame& frame) {
    std::string grid, limits, ticks;
    const std::string across = fmt::format("h{}", number(frame.width)), down = fmt::format("v{}", number(frame.height));
    for (const DrawnAxis::Tick& tick : panel.y.ticks) {
      const std::string y = number(frame.y(panel, tick.at));
      grid += fmt::format("M0 {}{}", y, across);
      ticks += fmt::format("M0 {}h-2.5", y);
    }
    for (const DrawnAxis::Tick& tick : panel.x.ticks) {
      const std::string x = number(frame.x(panel, tick.at));
      if (!panel.x.is_of_labels) grid += fmt::format("M{} 0{}", x, down);
      ticks += fmt::format("M{} {}v2.5", x, number(frame.height));
    }
    for (const double x : panel.at_x) limits += fmt::format("M{} 0{}", number(frame.x(panel, x)), down);
    for (const double y : panel.at_y) limits += fmt::format("M0 {}{}", number(frame.y(panel, y)), across);
    body_ += fmt::format("<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" overflow=\"hidden\">\n", number(frame.left),
                         number(frame.top), number(frame.width), number(frame.height));
    body_ += path(grid, stroke("#e4e4e4", 0.5)) + path(limits, stroke(kGrey, 0.8, "3 3"));
    for (const DrawnLine& line : panel.lines) {
      std::string areas;
      for (const std::vector<BandPoint>& area : line.areas) {
        for (size_t i = 0; i < area.size(); ++i)
          areas += frame.place(panel, area[i].x, area[i].high, i == 0 ? 'M' : 'L');
        for (size_t i = area.size(); i-- > 0;) areas += frame.place(panel, area[i].x, area[i].low, 'L');
        areas += "Z";
      }
      body_ += path(areas, fill(line.style));
    }
    std::string above;  // marks, whole ones at the edges, too
    for (const DrawnLine& line : panel.lines) {
      for (const bool is_of_fewer : {false, true}) {
        std::string strokes;
        for (const std::vector<BandPoint>& stretch : line.stretches) {
          for (size_t i = 0; i < stretch.size() && is_dashed(stretch) == is_of_fewer; ++i)
            strokes += frame.place(panel, stretch[i].x, stretch[i].mean, i == 0 ? 'M' : 'L');
        }
        body_ += path(strokes, stroke(line.style, is_of_fewer));
      }
      std::vector<std::string> places;
      for (const CurvePoint& mark : line.marks) places.push_back(frame.place(panel, mark.x, mark.y));
      above += marks(places, line.style);
    }
    for (const DrawnLine& line : panel.lines) {
      std::string crosses;
      for (const CurvePoint& end : line.diverged)
        crosses += frame.place(panel, end.x, end.y) + "m-2.4-2.4l4.8 4.8m0-4.8l-4.8 4.8";
      above += path(crosses, stroke(colour_of(line.style), 1.4));
    }
    const std::string axes = fmt::format("M0 0{}{}{}", down, across, ticks);
    body_ += fmt::format("</svg>\n<g transform=\"translate({} {})\">\n{}{}</g>\n", number(frame.left),
                         number(frame.top), path(axes, stroke(kGrey, 0.7)), above);
    if (panel.lines.empty())
      add_text("no finite value", frame.left + frame.width / 2, frame.top + frame.height / 2, kMiddle);
  }

  double sample() const { return drawing_.has_boxes ? kBox : kSample; }

  /// Returns its height.
  double add_entry(const LegendEntry& entry, double x, double top, double width) {
    constexpr double kBoxHeight = 6;
    const double y = top + line_height() / 2;
    if (drawing_.has_boxes) {
      const std::string box =
          fmt::format("M{} {}h{}v{}h-{}z", number(x), number(y - kBoxHeight / 2), kBox, kBoxHeight, kBox);
      body_ += path(box, fill(entry.style)) + path(box, stroke(entry.style));
    } else {
      body_ += path(fmt::format("M{} {}h{}", number(x), number(y), kSample), stroke(entry.style));
      body_ += marks({fmt::format("M{} {}", number(x + kSample / 2), number(y))}, entry.style);
    }
    const std::vector<std::string> lines = lines_within(entry.text.text, width - sample() - kSampleGap);
    add_texts(lines, x + sample() + kSampleGap, top, kLeft);
    return height_of(lines);
  }

  void add_legend() {
    if (drawing_.legend.empty()) return;
    constexpr double kGap = 4.5, kBetweenColumns = 8.5;
    const double beside = sample() + kSampleGap + kBetweenColumns;
    const size_t columns = legend_columns(drawing_, inner() / character_width(), beside / character_width());
    const double column = inner() / static_cast<double>(columns);
    y_ += kGap;
    for (size_t begin = 0; begin < drawing_.legend.size(); begin += columns) {
      double height = 0;
      for (size_t i = begin; i < std::min(begin + columns, drawing_.legend.size()); ++i) {
        const double x = kEdge + static_cast<double>(i - begin) * column;
        height = std::max(height, add_entry(drawing_.legend[i], x, y_, column));
      }
      y_ += height;
    }
  }

  double scale_;  // of the whole picture, so that the font has its size
  double width_, y_ = kEdge;
  bool has_legend_ = false;
  const Drawing& drawing_;
  std::string body_;
};

}  // namespace

std::string render_svg(const Figure& figure) {
  const Drawing drawing = drawing_of(figure);
  return Page(figure, drawing).svg();
}

double height_of_svg(const Figure& figure) {
  const Drawing drawing = drawing_of(figure);
  return Page(figure, drawing).height_in_mm();
}

}  // namespace tearless::harness
