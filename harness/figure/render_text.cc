#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/utf8.h"
#include "base/words.h"
#include "harness/figure/drawing.h"
#include "harness/figure/scale.h"

namespace tearless::harness {
namespace {

// A character of Unicode's braille patterns is 2 × 4 dots.
constexpr int kDotsAcross = 2, kDotsDown = 4;
constexpr std::array<std::array<uint8_t, kDotsAcross>, kDotsDown> kDotBits = {
    {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};

// Of the 256 colours of terminals, some with a contrast above 3 with white and with black: the first 16 are themes'.
constexpr auto kTerminalColours = std::to_array<int>({31, 166, 133, 64, 63, 160});

std::string colour_of(size_t line) {
  return fmt::format("38;5;{}", kTerminalColours.at(line % kTerminalColours.size()));
}

std::string braille(uint8_t dots) {
  return {'\xE2', static_cast<char>(0xA0 | (dots >> 6)), static_cast<char>(0x80 | (dots & 0x3F))};
}

std::string styled(const std::string& text, const std::string& style) {
  return style.empty() ? text : fmt::format("\033[{}m{}\033[0m", style, text);
}

// --- the canvas ----------------------------------------------------------------------------------------------------

class Canvas {
 public:
  Canvas(int columns, int rows) : columns_(columns), rows_(rows), cells_(static_cast<size_t>(columns) * rows) {}

  int dot_columns() const { return columns_ * kDotsAcross; }
  int dot_rows() const { return rows_ * kDotsDown; }

  // Of a line, or of its band, which has no place in a character of a line. Nothing outside the canvas.
  void set_dot(int x, int y, int line, bool of_band) {
    if (x < 0 || y < 0 || x >= dot_columns() || y >= dot_rows()) return;
    Cell& cell = at(x / kDotsAcross, y / kDotsDown);
    if (of_band && cell.is_of_line) return;
    cell.dots |= kDotBits.at(y % kDotsDown).at(x % kDotsAcross);
    cell.is_of_line |= !of_band;
    if (!of_band || cell.line < 0) cell.line = line;
  }

  // Whether `width` characters from a column on are inside the canvas, and none of them is a mark.
  bool has_room(int column, int row, int width) const {
    if (column < 0 || column + width > columns_) return false;
    for (int i = column; i < column + width; ++i) {
      if (!cells_[index(i, row)].mark.empty()) return false;
    }
    return true;
  }
  // A character in place of the dots.
  void set_mark(int column, int row, const std::string& mark, int line) {
    at(column, row) = {.dots = 0, .line = line, .is_of_line = true, .mark = mark};
  }
  void set_letters(int column, int row, const std::string& letters, int line) {
    for (const char letter : letters) set_mark(column++, row, std::string(1, letter), line);
  }

  std::string row_text(int row, bool colour) const {
    std::string text, same;
    std::string style;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[index(column, row)];
      const std::string cell_style = colour ? style_of(cell) : "";
      if (cell_style != style) {
        text += styled(same, style);
        same.clear();
        style = cell_style;
      }
      same += !cell.mark.empty() ? cell.mark : cell.dots == 0 ? " " : braille(cell.dots);
    }
    return text + styled(style.empty() ? same.erase(same.find_last_not_of(' ') + 1) : same, style);
  }

 private:
  struct Cell {
    uint8_t dots = 0;
    int line = -1;  // whose colour it has; -1: none
    bool is_of_line = false;
    std::string mark = {};
  };

  size_t index(int column, int row) const { return static_cast<size_t>(row) * columns_ + column; }
  Cell& at(int column, int row) { return cells_[index(column, row)]; }

  static std::string style_of(const Cell& cell) {
    if (cell.line < 0) return "";
    return (cell.mark.empty() ? "" : "1;") + colour_of(cell.line);
  }

  int columns_, rows_;
  std::vector<Cell> cells_;
};

// --- lines ---------------------------------------------------------------------------------------------------------

// The part of a line in one column of dots. Heights are in dots from the top.
struct Stretch {
  int x = 0;
  double mean = 0, low = 0, high = 0;
  bool is_joined = false;  // with the one before; false behind a value that is not finite
  bool is_of_fewer = false;
};

class Plot {
 public:
  Plot(const Figure::Panel& panel, const Scale& horizontal, const Scale& values, int columns, int rows)
      : panel_(panel), horizontal_(horizontal), values_(values), canvas_(columns, rows) {
    draw_limits();
    for (const Figure::Line& line : panel.lines) stretches_.push_back(stretches_of(line));
    const int lines = static_cast<int>(panel.lines.size());
    for (int i = 0; i < lines; ++i) draw_line(i);
    for (int i = 0; i < lines; ++i) draw_band(i);
    for (int i = 0; i < lines; ++i) draw_diverged(i);
    for (int i = 0; i < lines; ++i) draw_letters(i, columns, lines);
  }

  const Canvas& canvas() const { return canvas_; }

 private:
  struct Place {
    int column, row;
  };

  // -1: outside of the picture, or without a place on a logarithmic axis.
  int x_of(double x) const {
    constexpr double kRounding = 1e-9;
    const double at = horizontal_.position(x);
    return at >= -kRounding && at <= 1 + kRounding ? static_cast<int>(std::lround(at * (canvas_.dot_columns() - 1)))
                                                   : -1;
  }
  double y_of(double value) const {
    constexpr double kFarOutside = 1e9;
    return std::clamp((1 - values_.position(value)) * (canvas_.dot_rows() - 1), -kFarOutside, kFarOutside);
  }
  // A row of dots; -1 and dot_rows() stand for all that is above and below.
  int row_of(double y) const { return static_cast<int>(std::lround(std::clamp<double>(y, -1, canvas_.dot_rows()))); }

  std::vector<Stretch> stretches_of(const Figure::Line& line) const {
    std::vector<Stretch> found;
    int points = 0;  // of the last one
    bool is_joined = false;
    for (const BandPoint& point : line.points) {
      const int x = x_of(point.x);
      const bool has_place = x >= 0 && !std::isnan(values_.position(point.mean));
      if (point.runs == 0 || !has_place) {
        is_joined = false;
        continue;
      }
      const bool is_another = found.empty() || found.back().x != x;
      if (is_another) {
        found.push_back({.x = x, .is_joined = is_joined, .is_of_fewer = point.is_of_fewer});
        points = 0;
      }
      ++points;
      Stretch& at = found.back();
      const auto include = [points](double& mean, double y) { mean += (y - mean) / points; };
      include(at.mean, y_of(point.mean));
      // Below 0 a logarithmic axis has no place for the lower end.
      include(at.low, std::isnan(values_.position(point.low)) ? canvas_.dot_rows() : y_of(point.low));
      include(at.high, y_of(point.high));
      is_joined = true;
    }
    return found;
  }

  // Calls act(x, stretch) for each column of dots from the first to the last, with straight lines between those of
  // points, and whether the column continues the one before.
  template <class Act>
  static void follow(const std::vector<Stretch>& stretches, const Act& act) {
    for (size_t i = 0; i < stretches.size(); ++i) {
      const Stretch& to = stretches[i];
      const Stretch& from = to.is_joined && i > 0 ? stretches[i - 1] : to;
      for (int x = std::min(from.x + 1, to.x); x <= to.x; ++x) {
        const double part = from.x == to.x ? 1 : static_cast<double>(x - from.x) / (to.x - from.x);
        const auto between = [part](double a, double b) { return a + (b - a) * part; };
        act(Stretch{.x = x,
                    .mean = between(from.mean, to.mean),
                    .low = between(from.low, to.low),
                    .high = between(from.high, to.high),
                    .is_joined = from.x != to.x,
                    .is_of_fewer = from.is_of_fewer || to.is_of_fewer});
      }
    }
  }

  // Every third dot across the picture.
  void draw_limits() {
    for (const double limit : panel_.at_x) {
      const int x = x_of(limit);
      for (int y = 0; x >= 0 && y < canvas_.dot_rows(); y += 3) canvas_.set_dot(x, y, /*line=*/-1, /*of_band=*/true);
    }
    for (const double limit : panel_.at_y) {
      const double at = values_.position(limit);
      if (!(at >= 0 && at <= 1)) continue;
      for (int x = 0; x < canvas_.dot_columns(); x += 3)
        canvas_.set_dot(x, row_of(y_of(limit)), /*line=*/-1, /*of_band=*/true);
    }
  }

  // Its ends alone, dotted: areas would hide the lines.
  void draw_band(int line) {
    constexpr int kEvery = 4;  // dots
    follow(stretches_[line], [&](const Stretch& at) {
      if (at.low == at.high || at.x % kEvery != 0) return;
      for (const double end : {at.high, at.low}) canvas_.set_dot(at.x, row_of(end), line, /*of_band=*/true);
    });
  }

  void draw_line(int line) {
    constexpr int kDash = 4;  // dots, and as many between dashes
    int before = 0;
    follow(stretches_[line], [&](const Stretch& at) {
      const int y = row_of(at.mean);
      const bool is_between = at.is_of_fewer && at.x / kDash % 2 == 0;
      if (!is_between) canvas_.set_dot(at.x, y, line, /*of_band=*/false);
      if (at.is_joined && !is_between) {  // what lies between, so that a steep line has no holes
        for (int i = std::min(before, y) + 1; i < std::max(before, y); ++i) {
          canvas_.set_dot(at.x, i, line, /*of_band=*/false);
        }
      }
      before = y;
    });
  }

  // At the edge if the value lies outside.
  void draw_diverged(int line) {
    for (const CurvePoint& end : panel_.lines[line].diverged) {
      const int x = x_of(end.x);
      if (x < 0) continue;
      const bool has_place = std::isfinite(end.y) && !std::isnan(values_.position(end.y));
      const int y = has_place ? std::clamp(row_of(y_of(end.y)), 0, canvas_.dot_rows() - 1) : 0;
      canvas_.set_mark(x / kDotsAcross, y / kDotsDown, "×", line);
    }
  }

  // At intervals along the line, those of different lines at different places.
  void draw_letters(int line, int columns, int lines) {
    constexpr int kInterval = 24, kColumnsForALetter = 4;
    const std::string letters = letters_of(line, lines);
    const int width = static_cast<int>(letters.size());
    std::vector<Place> path;
    follow(stretches_[line], [&](const Stretch& at) {
      const int y = row_of(at.mean);
      if (y < 0 || y >= canvas_.dot_rows() || at.x < 0) return;
      const Place place = {at.x / kDotsAcross, y / kDotsDown};
      if (path.empty() || path.back().column != place.column || path.back().row != place.row) path.push_back(place);
    });
    if (path.empty()) return;
    const int count = std::clamp(columns / (kColumnsForALetter * lines), 1, std::max(1, columns / kInterval));
    std::optional<int> newest;
    for (int i = 0; i < count; ++i) {
      const double wanted = (i + (line + 0.5) / lines) * columns / count;
      const Place* best = nullptr;
      for (const Place& place : path) {
        const auto far = [&](const Place& from) { return std::abs(from.column - wanted); };
        if (canvas_.has_room(place.column, place.row, width) && (!best || far(place) < far(*best))) best = &place;
      }
      if (!best) break;
      if (newest && best->column < *newest + kInterval / 4) continue;
      newest = best->column;
      canvas_.set_letters(best->column, best->row, letters, line);
    }
    if (!newest) draw_letters_beside(path.back(), letters, line, columns);
  }

  // For a line that lies under the letters of others.
  void draw_letters_beside(const Place& place, const std::string& letters, int line, int columns) {
    for (int distance = 1; distance < columns; ++distance) {
      for (const int column : {place.column + distance, place.column - distance}) {
        if (!canvas_.has_room(column, place.row, static_cast<int>(letters.size()))) continue;
        canvas_.set_letters(column, place.row, letters, line);
        return;
      }
    }
  }

  const Figure::Panel& panel_;
  const Scale& horizontal_;
  const Scale& values_;
  Canvas canvas_;
  std::vector<std::vector<Stretch>> stretches_;
};

// --- axes ----------------------------------------------------------------------------------------------------------

constexpr int kColumnsForATick = 12;
// Of all panels together.
Scale horizontal_scale(const Figure& figure, int most_ticks) {
  Extent ends = extent_of_x(figure);
  if (figure.from_zero) ends.add(0);
  if (!ends.low) ends.low = ends.high = 1;
  if (figure.log_x) return log_scale(*ends.low, *ends.high, most_ticks);
  if (figure.from_zero && *ends.high <= 0) ends.high = 1;
  return scale_between(*ends.low, *ends.high, most_ticks, ends.all_whole ? 1 : 0);
}

// The axis below the canvas and the numbers below that, each in the middle below its tick as far as there is room.
std::string axis_text(const Scale& horizontal, const std::string& name, int margin, int columns) {
  std::string line, numbers;
  std::vector<bool> has_tick(columns);
  for (const double tick : horizontal.ticks) {
    const int dot = static_cast<int>(std::lround(horizontal.position(tick) * (columns * kDotsAcross - 1)));
    const int column = dot / kDotsAcross;
    has_tick[column] = true;
    constexpr double kLarge = 1e15;  // from here on not every digit is known
    const bool is_whole = !horizontal.is_log && horizontal.step >= 1 && std::abs(tick) < kLarge;
    const std::string number = is_whole ? fmt::format("{:.0f}", tick) : horizontal.label(tick);
    const int width = static_cast<int>(number.size());
    const int begin = std::min(margin + 1 + column - width / 2, margin + 1 + columns - width);
    const int end = static_cast<int>(numbers.size());
    if (begin < end + (end == 0 ? 0 : 1)) continue;
    numbers += std::string(begin - end, ' ') + number;
  }
  for (int column = 0; column < columns; ++column) line += has_tick[column] ? "┬" : "─";
  std::string text = fmt::format("{:>{}}{}\n{}\n", "└", margin + 1, line, numbers);
  if (name.empty()) return text;
  const int begin = margin + 1 + std::max(0, columns - static_cast<int>(display_width(name))) / 2;
  return text + std::string(begin, ' ') + name + "\n";
}

std::string heading_of(const Figure::Panel& panel) {
  const std::string title = printable(panel.title.text), y = printable(panel.y.text);
  return title.empty() ? y : y.empty() || title == y ? title : fmt::format("{}: {}", title, y);
}

}  // namespace

std::string text_of_lines(const Figure& figure, const Figure::Panel& panel, size_t width, bool colour) {
  const int rows = std::clamp(static_cast<int>(width) / 6, 8, 24);  // a picture keeps its shape as the terminal grows
  const Extent ends = extent_of_y(figure, panel);
  if (!ends.low) return "  no finite value\n";
  const Scale values =
      figure.log_y ? log_scale(*ends.low, *ends.high, rows / 3) : round_scale(*ends.low, *ends.high, rows / 3);
  std::vector<std::string> numbers(rows);
  int margin = 0;
  for (const double tick : values.ticks) {
    const auto dot = std::lround((1 - values.position(tick)) * (rows * kDotsDown - 1));
    std::string& number = numbers[dot / kDotsDown] = values.label(tick);
    margin = std::max(margin, static_cast<int>(number.size()) + 1);
  }
  const int columns = std::max(10, static_cast<int>(width) - margin - 1);
  const Scale horizontal = horizontal_scale(figure, static_cast<int>(width) / kColumnsForATick);
  const Plot plot(panel, horizontal, values, columns, rows);
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const std::string& number = numbers[row];
    text += fmt::format("{:>{}} {}{}\n", number, std::max(0, margin - 1), number.empty() ? "│" : "┤",
                        plot.canvas().row_text(row, colour));
  }
  return text + axis_text(horizontal, printable(figure.x.text), margin, columns);
}

namespace {

// --- bars ------------------------------------------------------------------------------------------------------------

// From the base to the mean, in eighths of a character, and the band over it: "██████├─┼──┤".
std::string bar_text(const BandPoint& point, double base, const Scale& values, int columns, bool is_published) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto place = [&](double value) {
    const double at = values.position(value);
    return std::isnan(at) ? 0 : std::clamp(at, 0.0, 1.0) * (columns - 1);
  };
  const auto column = [&](double value) { return static_cast<int>(std::lround(place(value))); };
  const double from = place(std::min(base, point.mean)), to = place(std::max(base, point.mean));
  const int low = column(point.low), high = column(point.high);
  std::string text;
  for (int i = 0; i < columns; ++i) {
    const int eighths = static_cast<int>(std::lround((to - i + 0.5) * 8));
    if (low < high && i >= low && i <= high) {
      text += i == column(point.mean) ? "┼" : i == low ? "├" : i == high ? "┤" : "─";
    } else if (from == to || i < std::lround(from) || eighths <= 0) {
      text += " ";
    } else {
      text += is_published ? "░" : eighths >= 8 ? "█" : kEighths[eighths];
    }
  }
  return text.erase(text.find_last_not_of(' ') + 1);
}

}  // namespace

// A row for each bar, below each other: the label, the line's letters, the bar, its mean.
std::string text_of_bars(const Figure& figure, const Figure::Panel& panel, size_t width, bool colour) {
  constexpr size_t kNumber = 14;  // of the mean and the × of diverged runs
  size_t labels = 0;
  for (const Figure::Label& label : figure.labels) labels = std::max(labels, display_width(printable(label.name.text)));
  labels = std::min(labels, width / 3);
  const size_t letters = letters_of(0, figure.legend.size()).size(), margin = labels + letters + 2;
  const int columns = std::max(10, static_cast<int>(width - margin - 1 - kNumber));
  Extent ends = extent_of_y(figure, panel);
  if (!ends.low) return "  no finite value\n";
  ends.add(figure.log_y ? *ends.low * std::pow(*ends.low / *ends.high, 0.05) : 0);  // so that the least bar is seen
  const int most_ticks = columns / kColumnsForATick;
  const Scale values =
      figure.log_y ? log_scale(*ends.low, *ends.high, most_ticks) : scale_between(*ends.low, *ends.high, most_ticks, 0);
  std::string text;
  for (size_t i = 0; i < figure.labels.size(); ++i) {
    std::string label = fitted(printable(figure.labels[i].name.text), labels);
    label.append(labels - display_width(label), ' ');
    for (const size_t line : shown_lines(figure)) {
      const Figure::Line& one = panel.lines[line];
      const auto is_here = [&](const auto& point) { return point.x == static_cast<double>(i + 1); };
      const auto point = std::ranges::find_if(one.points, is_here);
      std::string bar;
      if (point != one.points.end() && point->runs > 0) {
        bar = bar_text(*point, figure.log_y ? *ends.low : 0, values, columns, !one.source.empty());
        bar += fmt::format(" {:.4g}", point->mean);
      }
      if (std::ranges::any_of(one.diverged, is_here)) bar += " ×";
      text += fmt::format("{}  {} │{}\n", label, letters_of(line, figure.legend.size()),
                          styled(bar, colour ? colour_of(line) : ""));
      label.assign(labels, ' ');
    }
  }
  return text + axis_text(values, printable(figure.x.text), static_cast<int>(margin), columns);
}

namespace {

// --- the legend ------------------------------------------------------------------------------------------------------

// The last words of dotted names where there is no room for the whole.
std::vector<std::string> shortened(std::vector<std::string> names) {
  for (std::string& name : names) name = last_word(name);
  return names;
}

using Lines = std::vector<std::vector<std::string>>;

std::vector<size_t> widths_of(const Lines& lines) {
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i]));
  }
  return widths;
}

// The columns in which no two of several lines differ. The first line is the heading.
void leave_out_constant_columns(Lines& lines) {
  for (size_t i = lines.size() < 3 ? 0 : lines[0].size(); i-- > 0;) {
    const auto is_alike = [&](const auto& line) { return line[i] == lines[1][i]; };
    if (!std::all_of(lines.begin() + 1, lines.end(), is_alike)) continue;
    for (auto& line : lines) line.erase(line.begin() + static_cast<ptrdiff_t>(i));
  }
}

std::string legend_text(const Figure& figure, size_t width, bool colour) {
  const size_t count = figure.legend.size(), letters = letters_of(0, count).size();
  Lines lines;
  const auto add = [&](const std::vector<Name>& names) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const Name& name : names) line.push_back(printable(name.text));
  };
  add(figure.heading);
  for (const std::vector<Name>& names : figure.legend) add(names);
  const auto is_too_wide = [&] {
    const std::vector<size_t> widths = widths_of(lines);
    return std::accumulate(widths.begin(), widths.end(), letters + 2 * widths.size()) > width;
  };
  if (is_too_wide()) lines[0] = shortened(std::move(lines[0]));
  if (is_too_wide()) leave_out_constant_columns(lines);
  const std::vector<size_t> widths = widths_of(lines);
  std::string text;
  const bool has_heading = std::ranges::any_of(lines[0], [](const std::string& name) { return !name.empty(); });
  for (size_t i = has_heading ? 0 : 1; i < lines.size(); ++i) {
    std::string line;
    for (size_t k = 0; k < widths.size(); ++k) line += fmt::format("  {:<{}}", lines[i][k], widths[k]);
    line.erase(line.find_last_not_of(' ') + 1);
    const std::string style = colour && i > 0 ? "1;" + colour_of(i - 1) : "";
    text += styled(i == 0 ? std::string(letters, ' ') : letters_of(i - 1, count), style);
    text += fitted(line, width - letters) + "\n";
  }
  return text;
}

}  // namespace

std::string letters_of(size_t line, size_t lines) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string letters;
  for (size_t count = 1; letters.empty() || count < lines; count *= kLetters.size(), line /= kLetters.size()) {
    letters.insert(letters.begin(), kLetters[line % kLetters.size()]);
  }
  return letters;
}

std::string render_text(const Figure& figure, size_t columns, bool colour) {
  const size_t width = std::max<size_t>(columns, 40);
  std::string text;
  for (const std::string& line : wrapped(printable(figure.title.text), width))
    text += styled(line, colour ? "1" : "") + "\n";
  if (!text.empty()) text += "\n";
  for (const Figure::Panel& panel : figure.panels) {
    const std::string heading = heading_of(panel);
    if (!heading.empty()) text += styled(heading, colour ? "1" : "") + "\n";
    text += drawing_of(figure.kind).text(figure, panel, width, colour) + "\n";
  }
  text += legend_text(figure, width, colour);
  for (const Name& note : figure.notes) {
    for (const std::string& line : wrapped(printable(note.text), width)) text += line + "\n";
  }
  return text;
}

}  // namespace tearless::harness
