#include "harness/figure/drawing.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <span>

#include "base/utf8.h"
#include "base/words.h"
#include "harness/figure/scale.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxPoints = 500;    // of a line: TeX's memory ends at some thousands
constexpr size_t kMaxAllMarked = 12;  // a line of so many points has all of them marked
constexpr int kMarks = 8;             // of a longer one
constexpr double kMargin = 0.04;      // of an axis, beyond what is on it
constexpr double kFarOutside = 20;    // axes: where lines end that leave the picture, since TeX has no larger lengths
constexpr double kLoneBand = 0.004;   // of an axis: half the width of the band of one point
constexpr double kUsualFont = 8.5;    // points, in which a column has so many characters
constexpr double kMaxDrawn = 1e250;   // so that the ends of a scale about it are finite
constexpr const char* kThinSpace = "\u2009";
constexpr double kColumnInMm = 84, kPageInMm = 174;
// About what fits from edge to edge, and what is beside a panel's axes but for its numbers.
constexpr double kCharactersOfColumn = 47, kCharactersOfPage = 97, kCharactersBesidePlot = 8;

// --- axes ------------------------------------------------------------------------------------------------------------

bool has_place(const DrawnAxis& axis, double value) { return std::isfinite(value) && (!axis.is_log || value > 0); }
bool is_on(const DrawnAxis& axis, double value) {
  return has_place(axis, value) && value >= axis.low && value <= axis.high;
}
double kept_near(const DrawnAxis& axis, double value) {
  if (axis.is_log && !(value > 0)) return axis.low;
  const double position = axis.position(std::clamp(value, -kMaxDrawn, kMaxDrawn));
  return std::abs(position) < kFarOutside ? value : axis.value(std::clamp(position, -kFarOutside, 1 + kFarOutside));
}

/// "200 000" with a thin space, "−0.5", "2×10⁶".
Name tick_label(double value, const std::string& digits) {
  constexpr const char* kSuperscripts[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const size_t exponent_at = digits.find('e');
  std::string mantissa = digits.substr(0, exponent_at), sign = value < 0 ? "−" : "", latex_sign = value < 0 ? "-" : "";
  if (mantissa.starts_with('-')) mantissa.erase(0, 1);
  if (exponent_at != std::string::npos) {
    const int exponent = std::stoi(digits.substr(exponent_at + 1));
    std::string power = exponent < 0 ? "⁻" : "";
    for (const char digit : std::to_string(std::abs(exponent))) power += kSuperscripts[digit - '0'];
    if (mantissa.find('.') != std::string::npos) mantissa.erase(mantissa.find_last_not_of(".0") + 1);
    const bool is_power_alone = mantissa == "1";
    return {sign + (is_power_alone ? "" : mantissa + "×") + "10" + power,
            fmt::format("${}{}10^{{{}}}$", latex_sign, is_power_alone ? "" : mantissa + "\\times ", exponent)};
  }
  const size_t whole = std::min(mantissa.find('.'), mantissa.size());
  std::string text, latex;
  for (size_t i = 0; i < mantissa.size(); ++i) {
    if (i > 0 && i < whole && whole > 4 && (whole - i) % 3 == 0) {
      text += kThinSpace;
      latex += "\\,";
    }
    text += mantissa[i];
    latex += mantissa[i];
  }
  return {sign + text, "$" + latex_sign + latex + "$"};
}

/// The digits of a tick: as they are up to 10⁷, with an exponent beyond and for what is very small.
std::string tick_digits(double tick, double step) {
  constexpr double kSameAs = 1e-9, kMaxPlain = 1e7, kMinPlain = 1e-4;
  if (tick == 0) return "0";
  const auto power_of = [](double value) { return static_cast<int>(std::floor(std::log10(value) + kSameAs)); };
  if (std::abs(tick) < kMaxPlain && step >= kMinPlain * (1 - kSameAs))
    return fmt::format("{:.{}f}", tick, std::max(0, -power_of(step)));
  return fmt::format("{:.{}e}", tick, std::clamp(power_of(std::abs(tick)) - power_of(step), 0, 16));
}

std::vector<DrawnAxis::Tick> ticks_of(const DrawnAxis& axis, int max_ticks, double least_step) {
  std::vector<DrawnAxis::Tick> ticks;
  if (!axis.is_log) {
    const Scale scale = scale_between(axis.low, axis.high, max_ticks, least_step);
    for (const double tick : scale.ticks) ticks.push_back({tick, tick_label(tick, tick_digits(tick, scale.step))});
    return ticks;
  }
  constexpr double kMinPlain = 0.0099, kMaxPlain = 99999;
  const Scale scale = log_scale(axis.low, axis.high, max_ticks);
  const bool is_plain =
      std::ranges::all_of(scale.ticks, [](double tick) { return tick >= kMinPlain && tick < kMaxPlain; });
  for (const double tick : scale.ticks)
    ticks.push_back({tick, tick_label(tick, is_plain ? fmt::format("{:.6g}", tick) : fmt::format("{:.0e}", tick))});
  return ticks;
}

/// The axis of `extent`, without ticks. `from`: where it begins, if that is given.
DrawnAxis axis_of(const Extent& extent, std::optional<double> from) {
  DrawnAxis axis{.is_log = extent.is_log};
  axis.low = extent.low.value_or(extent.is_log ? 1 : 0);
  axis.high = extent.high.value_or(extent.is_log ? 10 : 1);
  if (from) axis.low = std::min(axis.low, *from);
  const bool begins_there = from && axis.low == *from;
  constexpr double kSame = 1e-9;
  if (axis.is_log && axis.high < axis.low * (1 + kSame)) {
    axis.low /= 2;
    axis.high *= 2;
  } else if (!axis.is_log && axis.high - axis.low <= kSame * std::max(std::abs(axis.low), std::abs(axis.high))) {
    const double around = axis.high == 0 ? 1 : std::abs(axis.high) / 10;
    axis.high += around;
    if (!begins_there) axis.low -= around;
  }
  const double low = begins_there ? axis.low : axis.value(-kMargin), high = axis.value(1 + kMargin);
  axis.low = !axis.is_log && axis.low >= 0 ? std::max(0.0, low) : low;
  axis.high = high;
  return axis;
}

/// Labels side by side. Where the longest of their words has no room, they slant.
DrawnAxis axis_of_labels(const std::vector<Figure::Label>& labels, double room) {
  const auto count = static_cast<double>(labels.size());
  DrawnAxis axis{.low = 0.5, .high = count + 0.5, .is_of_labels = true};
  size_t longest = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    axis.ticks.push_back({static_cast<double>(i + 1), labels[i].name});
    const std::string text = printable(labels[i].name.text);
    for (const std::string_view word : split_words(text)) longest = std::max(longest, display_width(word));
  }
  axis.is_slanting = static_cast<double>(longest + 1) > room / count;
  return axis;
}

/// All panels have the same. Its labels have room for so many characters.
DrawnAxis x_axis_of(const Figure& figure, double room) {
  if (!figure.labels.empty()) return axis_of_labels(figure.labels, room);
  const Extent extent = extent_of_x(figure);
  const bool all_whole = extent.all_whole;
  const bool from_zero = figure.from_zero && !figure.log_x;
  DrawnAxis axis = axis_of(extent, from_zero ? std::optional(0.0) : std::nullopt);
  constexpr int kMaxTicks = 8, kMinTicks = 2;
  constexpr double kGap = 1.5;  // between two labels
  for (int max_ticks = kMaxTicks; max_ticks >= kMinTicks; --max_ticks) {
    axis.ticks = ticks_of(axis, max_ticks, all_whole ? 1 : 0);
    double width = 0;
    for (const DrawnAxis::Tick& tick : axis.ticks) width += tick.width() + kGap;
    if (width <= room) break;
  }
  return axis;
}

DrawnAxis y_axis_of(const Figure& figure, const Figure::Panel& panel, bool has_zero) {
  Extent extent = extent_of_y(figure, panel);
  if (has_zero) extent.add(0);
  constexpr int kMaxTicks = 6;
  DrawnAxis axis = axis_of(extent, has_zero && !figure.log_y ? std::optional(0.0) : std::nullopt);
  axis.ticks = ticks_of(axis, kMaxTicks, 0);
  return axis;
}

// --- lines -----------------------------------------------------------------------------------------------------------

bool is_drawn(const BandPoint& point, const DrawnAxis& x, const DrawnAxis& y) {
  return point.runs > 0 && has_place(x, point.x) && has_place(y, point.mean);
}

/// The mean of each `each` neighbouring points; interrupted where one of them is.
std::vector<BandPoint> thinned(const std::vector<BandPoint>& points, size_t each, const DrawnAxis& x,
                               const DrawnAxis& y) {
  std::vector<BandPoint> means;
  for (size_t begin = 0; begin < points.size(); begin += each) {
    const auto own = std::span(points).subspan(begin, std::min(each, points.size() - begin));
    BandPoint& sum = means.emplace_back();  // of no run where the line is interrupted
    if (!std::ranges::all_of(own, [&](const BandPoint& point) { return is_drawn(point, x, y); })) continue;
    double count = 0;
    for (const BandPoint& point : own) {
      ++count;
      sum.runs = std::max(sum.runs, point.runs);
      sum.is_of_fewer = sum.is_of_fewer || point.is_of_fewer;
      sum.x += (point.x - sum.x) / count;
      sum.mean += (point.mean - sum.mean) / count;
      sum.low += (kept_near(y, point.low) - sum.low) / count;
      sum.high += (kept_near(y, point.high) - sum.high) / count;
    }
  }
  return means;
}

std::vector<std::vector<BandPoint>> stretches_of(const std::vector<BandPoint>& points, const DrawnAxis& x,
                                                 const DrawnAxis& y) {
  std::vector<std::vector<BandPoint>> stretches;
  bool is_joined = false;
  for (BandPoint point : points) {
    const bool is_there = is_drawn(point, x, y);
    if (is_there) {
      for (double* value : {&point.mean, &point.low, &point.high}) *value = kept_near(y, *value);
      if (!is_joined) stretches.emplace_back();
      std::vector<BandPoint>& last = stretches.back();
      // What is beside a point of fewer runs is dashed, and a stretch of its own, from a point of all to the next.
      if (last.size() > 1 && (point.is_of_fewer || last.back().is_of_fewer) != is_dashed(last)) {
        stretches.push_back({last.back(), point});
      } else {
        last.push_back(point);
      }
    }
    is_joined = is_there;
  }
  return stretches;
}

/// The points with a band, and those beside one.
void add_bands(const std::vector<BandPoint>& stretch, const DrawnAxis& x, std::vector<std::vector<BandPoint>>& areas) {
  const auto has_band = [&](size_t i) { return i < stretch.size() && stretch[i].low < stretch[i].high; };
  if (stretch.size() == 1 && has_band(0)) {
    BandPoint left = stretch[0], right = stretch[0];
    left.x = x.value(x.position(left.x) - kLoneBand);
    right.x = x.value(x.position(right.x) + kLoneBand);
    areas.push_back({left, right});
    return;
  }
  bool is_joined = false;
  for (size_t i = 0; i < stretch.size(); ++i) {
    const bool is_there = has_band(i) || has_band(i + 1) || (i > 0 && has_band(i - 1));
    if (is_there && !is_joined) areas.emplace_back();
    if (is_there) areas.back().push_back(stretch[i]);
    is_joined = is_there;
  }
}

/// Those of a short line, and of a long one some at equal distances, shifted for each line, so that lines which run
/// together can be told apart. A point that is joined to no other has one in any case.
Curve marks_of(const std::vector<std::vector<BandPoint>>& stretches, const DrawnAxis& x, const DrawnAxis& y,
               double shift) {
  std::vector<CurvePoint> points;
  Curve marks;
  for (const std::vector<BandPoint>& stretch : stretches) {
    for (const BandPoint& point : stretch) {
      if (!is_on(y, point.mean)) continue;
      points.push_back({point.x, point.mean});
      if (stretch.size() == 1) marks.push_back(points.back());
    }
  }
  points.erase(std::unique(points.begin(), points.end()), points.end());  // where two stretches meet
  if (points.size() <= kMaxAllMarked) return points;
  const double first = x.position(points.front().x), last = x.position(points.back().x);
  for (int i = 0; i < kMarks; ++i) {
    const double wanted = first + (last - first) * (i + shift) / kMarks;
    const auto far = [&](const CurvePoint& point) { return std::abs(x.position(point.x) - wanted); };
    marks.push_back(*std::ranges::min_element(points, {}, far));
  }
  std::ranges::sort(marks, {}, &CurvePoint::x);
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  return marks;
}

/// At the edge if the value lies outside, above if it is not finite.
Curve diverged_of(const Curve& ends, const DrawnAxis& x, const DrawnAxis& y) {
  Curve marks;
  for (const CurvePoint& end : ends) {
    if (!has_place(x, end.x)) continue;
    const bool is_below = end.y < y.low;
    marks.push_back({end.x, is_on(y, end.y) ? end.y : is_below ? y.low : y.high});
  }
  return marks;
}

/// How many neighbouring points of a long line become one.
size_t each_of(const Figure::Line& line) { return (line.points.size() + kMaxPoints - 1) / kMaxPoints; }

void draw_lines(const Figure&, const Figure::Panel& panel, const std::vector<LineStyle>& styles, DrawnPanel& drawn) {
  const DrawnAxis &x = drawn.x, &y = drawn.y;
  for (size_t i = 0; i < panel.lines.size(); ++i) {
    const Figure::Line& line = panel.lines[i];
    DrawnLine one{.index = i, .style = styles[i]};
    const size_t each = each_of(line);
    one.stretches = stretches_of(each > 1 ? thinned(line.points, each, x, y) : line.points, x, y);
    for (const auto& stretch : one.stretches) add_bands(stretch, x, one.areas);
    one.marks = marks_of(one.stretches, x, y, (static_cast<double>(i) + 0.5) / static_cast<double>(panel.lines.size()));
    one.diverged = diverged_of(line.diverged, x, y);
    if (!one.stretches.empty() || !one.diverged.empty()) drawn.lines.push_back(std::move(one));
  }
}

// --- bars ------------------------------------------------------------------------------------------------------------

/// Side by side at each label, with the band as an error bar.
void draw_bars(const Figure& figure, const Figure::Panel& panel, const std::vector<LineStyle>& styles,
               DrawnPanel& drawn) {
  constexpr double kGroup = 0.8, kBar = 0.9;  // of the distance of two labels, and of a bar's share of that
  constexpr double kMeasured = 0.6, kPublished = 0.15;
  const std::vector<size_t> lines = shown_lines(figure);
  const double share = kGroup / static_cast<double>(lines.size()), width = kBar * share;
  const DrawnAxis &x = drawn.x, &y = drawn.y;
  for (size_t k = 0; k < lines.size(); ++k) {
    const Figure::Line& line = panel.lines[lines[k]];
    DrawnLine one{.index = lines[k], .style = styles[lines[k]]};
    one.style.fill = line.source.empty() ? kMeasured : kPublished;
    const double beside = (static_cast<double>(k) + 0.5) * share - kGroup / 2;
    const double base = y.is_log ? y.low : 0;
    for (const BandPoint& point : line.points) {
      if (!is_drawn(point, x, y)) continue;
      const double at = point.x + beside, left = at - width / 2, right = at + width / 2;
      const auto corner = [](double x, double y) { return BandPoint{x, 1, y, y, y}; };
      BandPoint end = {left, point.runs, point.mean, std::min(base, point.mean), std::max(base, point.mean)};
      one.areas.push_back({end, end});
      one.areas.back().back().x = right;
      one.stretches.push_back(
          {corner(left, base), corner(left, point.mean), corner(right, point.mean), corner(right, base)});
      if (!(point.low < point.high)) continue;
      const double low = kept_near(y, point.low), high = kept_near(y, point.high), cap = width / 4;
      one.stretches.push_back({corner(at, low), corner(at, high)});
      for (const double edge : {low, high}) one.stretches.push_back({corner(at - cap, edge), corner(at + cap, edge)});
    }
    one.diverged = diverged_of(line.diverged, x, y);
    for (CurvePoint& end : one.diverged) end.x += beside;
    if (!one.stretches.empty() || !one.diverged.empty()) drawn.lines.push_back(std::move(one));
  }
}

// In the order of FigureSpec::Kind.
constexpr std::array<FigureDrawing, 2> kKinds = {{{/*has_zero=*/false, /*has_boxes=*/false, draw_lines, text_of_lines},
                                                  {/*has_zero=*/true, /*has_boxes=*/true, draw_bars, text_of_bars}}};

// --- a free place ----------------------------------------------------------------------------------------------------

/// Of positions on the axes.
struct Box {
  double left, right, low, high;
};

bool is_free(const DrawnPanel& panel, const Box& box) {
  const auto has = [&](double x, double low, double high) {
    return box.left <= x && x <= box.right && low <= box.high && box.low <= high;
  };
  /// From one point to the next, between `low` and `high` of both.
  const auto meets = [&](const std::vector<BandPoint>& points, double BandPoint::*low, double BandPoint::*high) {
    constexpr double kStep = 1.0 / 64;  // of the panel; lines may leave it
    for (size_t i = 0; i < points.size(); ++i) {
      const BandPoint &a = points[i], &b = points[std::min(i + 1, points.size() - 1)];
      const double from_x = panel.x.position(a.x), to_x = panel.x.position(b.x), from_low = panel.y.position(a.*low),
                   to_low = panel.y.position(b.*low), from_high = panel.y.position(a.*high),
                   to_high = panel.y.position(b.*high);
      const double longest =
          std::max({kStep, std::abs(to_x - from_x), std::abs(to_low - from_low), std::abs(to_high - from_high)});
      for (double part = 0; part <= 1; part += kStep / longest) {
        if (has(std::lerp(from_x, to_x, part), std::lerp(from_low, to_low, part), std::lerp(from_high, to_high, part)))
          return true;
      }
    }
    return false;
  };
  const auto meets_point = [&](const CurvePoint& point) {
    return has(panel.x.position(point.x), panel.y.position(point.y), panel.y.position(point.y));
  };
  for (const double x : panel.at_x) {
    if (has(panel.x.position(x), 0, 1)) return false;
  }
  for (const double y : panel.at_y) {
    if (box.low <= panel.y.position(y) && panel.y.position(y) <= box.high) return false;
  }
  return std::ranges::none_of(panel.lines, [&](const DrawnLine& line) {
    return std::ranges::any_of(line.diverged, meets_point) ||
           std::ranges::any_of(line.stretches,
                               [&](const auto& one) { return meets(one, &BandPoint::mean, &BandPoint::mean); }) ||
           std::ranges::any_of(line.areas,
                               [&](const auto& one) { return meets(one, &BandPoint::low, &BandPoint::high); });
  });
}

// --- texts -----------------------------------------------------------------------------------------------------------

/// Of each line: published ones look like the measured one that they are beside, if there is one.
std::vector<LineStyle> styles_of(const Figure& figure) {
  std::vector<std::string> source_of(figure.legend.size());  // "": measured
  for (const Figure::Panel& panel : figure.panels) {
    source_of.resize(std::max(source_of.size(), panel.lines.size()));
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      if (!panel.lines[i].source.empty()) source_of[i] = panel.lines[i].source;
    }
  }
  std::vector<std::string> sources;
  std::vector<LineStyle> styles;
  for (size_t i = 0; i < source_of.size(); ++i) {
    if (source_of[i].empty()) {
      styles.push_back(style_of(i));
      continue;
    }
    if (std::ranges::find(sources, source_of[i]) == sources.end()) sources.push_back(source_of[i]);
    const auto source = static_cast<size_t>(std::ranges::find(sources, source_of[i]) - sources.begin());
    const auto measured = figure.measured.find(i);
    styles.push_back(published_style_of(measured == figure.measured.end() ? i : measured->second, source));
  }
  return styles;
}

/// The lines that some panel shows. What is published of one line in several panels is one entry.
std::vector<LegendEntry> legend_of(const Figure& figure, const std::vector<DrawnPanel>& panels) {
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < figure.legend.size(); ++i) {
    Name text = joined_labels(figure.heading, figure.legend[i]);
    if (text.text.empty()) continue;
    for (const DrawnPanel& panel : panels) {
      const auto line = std::ranges::find(panel.lines, i, &DrawnLine::index);
      if (line == panel.lines.end()) continue;
      const auto is_same = [&](const LegendEntry& one) { return one.text == text && one.style == line->style; };
      if (std::ranges::none_of(legend, is_same)) legend.push_back({i, line->style, std::move(text)});
      break;
    }
  }
  return legend;
}

/// Side by side on a page, as many as keep their ticks legible; one below the other in a column.
size_t columns_of(size_t panels, bool is_page_wide) {
  constexpr size_t kMaxColumns = 3;
  if (!is_page_wide) return 1;
  return panels == 4 ? 2 : std::clamp<size_t>(panels, 1, kMaxColumns);
}

}  // namespace

void Extent::add(double value) {
  if (!std::isfinite(value) || (is_log && value <= 0)) return;
  all_whole = all_whole && std::trunc(value) == value;
  value = std::clamp(value, -kMaxDrawn, kMaxDrawn);
  low = std::min(low.value_or(value), value);
  high = std::max(high.value_or(value), value);
}

Extent extent_of_x(const Figure& figure) {
  Extent extent{.is_log = figure.log_x};
  for (const Figure::Panel& panel : figure.panels) {
    for (const Figure::Line& line : panel.lines) {
      for (const BandPoint& point : line.points) {
        if (point.runs > 0) extent.add(point.x);
      }
      for (const CurvePoint& end : line.diverged) extent.add(end.x);
    }
  }
  const bool all_whole = extent.all_whole;  // but for the limits
  for (const Figure::Panel& panel : figure.panels) {
    for (const double x : panel.at_x) extent.add(x);
  }
  extent.all_whole = all_whole;
  return extent;
}

Extent extent_of_y(const Figure& figure, const Figure::Panel& panel) {
  Extent own{.is_log = figure.log_y}, shared = own;
  const auto add = [](const Figure::Panel& from, bool all, Extent& extent) {
    for (const Figure::Line& line : from.lines) {
      for (const BandPoint& point : line.points) {
        if (point.runs == 0 || (!all && !line.sets_scale)) continue;
        for (const double y : {point.low, point.mean, point.high}) extent.add(y);
      }
    }
  };
  add(panel, true, own);
  if (!own.low) return own;
  for (const bool all : {false, true}) {
    if (shared.low) break;
    for (const Figure::Panel& other : figure.panels) {
      if (other.scale == panel.scale) add(other, all, shared);
    }
  }
  for (const Figure::Panel& other : figure.panels) {
    for (const double y : other.at_y) {
      if (other.scale == panel.scale) shared.add(y);
    }
  }
  return shared;
}

double width_of(const Figure& figure) {
  return figure.own_width.value_or(figure.width == TableSpec::Width::kPage ? kPageInMm : kColumnInMm);
}

bool is_dashed(const std::vector<BandPoint>& stretch) {
  return stretch.size() > 1 && (stretch[0].is_of_fewer || stretch[1].is_of_fewer);
}

double DrawnAxis::Tick::width() const {
  size_t thin_spaces = 0;
  for (size_t at = label.text.find(kThinSpace); at != std::string::npos; at = label.text.find(kThinSpace, at + 1))
    ++thin_spaces;
  constexpr double kNarrower = 0.6;
  return static_cast<double>(display_width(label.text)) - kNarrower * static_cast<double>(thin_spaces);
}

double DrawnAxis::width() const {
  double longest = 0;
  for (const Tick& tick : ticks) longest = std::max(longest, tick.width());
  return longest;
}

double DrawnAxis::position(double value) const {
  return is_log ? std::log10(value / low) / std::log10(high / low) : (value - low) / (high - low);
}

double DrawnAxis::value(double position) const {
  return is_log ? low * std::pow(high / low, position) : low + position * (high - low);
}

const FigureDrawing& drawing_of(FigureSpec::Kind kind) { return kKinds.at(static_cast<size_t>(kind)); }

std::vector<size_t> shown_lines(const Figure& figure) {
  std::set<size_t> lines;
  for (const Figure::Panel& panel : figure.panels) {
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      const Figure::Line& line = panel.lines[i];
      const auto has_runs = [](const BandPoint& point) { return point.runs > 0; };
      if (std::ranges::any_of(line.points, has_runs) || !line.diverged.empty()) lines.insert(i);
    }
  }
  std::vector<size_t> ordered(lines.begin(), lines.end());
  std::ranges::stable_sort(ordered, {}, [&](size_t line) {
    const auto beside = figure.measured.find(line);
    return beside == figure.measured.end() ? line : beside->second;
  });
  return ordered;
}

Drawing drawing_of(const Figure& figure) {
  const FigureDrawing& kind = drawing_of(figure.kind);
  const bool is_page_wide = figure.width == TableSpec::Width::kPage;
  Drawing drawing{
      .columns = columns_of(figure.panels.size(), is_page_wide), .notes = figure.notes, .has_boxes = kind.has_boxes};
  double numbers = 0;  // the characters of the longest beside an axis of y
  for (const Figure::Panel& panel : figure.panels) {
    drawing.panels.push_back({.title = panel.title, .y_label = panel.y, .y = y_axis_of(figure, panel, kind.has_zero)});
    numbers = std::max(numbers, drawing.panels.back().y.width());
  }
  const double page = (width_of(figure) - kColumnInMm) / (kPageInMm - kColumnInMm);  // 0: as wide as a column
  const double panel_width =
      (kCharactersOfColumn + page * (kCharactersOfPage - kCharactersOfColumn)) / static_cast<double>(drawing.columns);
  const double scale = figure.font_size.value_or(kUsualFont) / kUsualFont;
  const DrawnAxis x = x_axis_of(figure, panel_width / scale - kCharactersBesidePlot - numbers);
  const std::vector<LineStyle> styles = styles_of(figure);
  size_t greatest = 1;
  for (size_t p = 0; p < figure.panels.size(); ++p) {
    const Figure::Panel& panel = figure.panels[p];
    DrawnPanel& drawn = drawing.panels[p];
    drawn.x = x;
    kind.draw(figure, panel, styles, drawn);
    for (const Figure::Line& line : panel.lines) greatest = std::max(greatest, each_of(line));
    std::ranges::copy_if(panel.at_x, std::back_inserter(drawn.at_x), [&](double at) { return is_on(x, at); });
    std::ranges::copy_if(panel.at_y, std::back_inserter(drawn.at_y), [&](double at) { return is_on(drawn.y, at); });
  }
  drawing.legend = legend_of(figure, drawing.panels);
  if (greatest > 1) {
    drawing.notes.push_back({fmt::format("Of lines with more than {} points, means of up to {} neighbours are drawn.",
                                         kMaxPoints, greatest)});
  }
  return drawing;
}

size_t legend_width(const Drawing& drawing) {
  size_t longest = 0;
  for (const LegendEntry& entry : drawing.legend)
    longest = std::max(longest, display_width(printable(entry.text.text)));
  return longest;
}

size_t legend_columns(const Drawing& drawing, double width, double sample) {
  const size_t entries = std::max<size_t>(drawing.legend.size(), 1);
  const auto fit = static_cast<size_t>(std::max(1.0, width / (static_cast<double>(legend_width(drawing)) + sample)));
  const size_t rows = (entries + fit - 1) / fit;
  return (entries + rows - 1) / rows;
}

std::optional<Corner> free_corner(const Drawing& drawing, double width, double height) {
  if (width >= 1 || height >= 1) return std::nullopt;
  for (size_t i = 0; i < drawing.panels.size(); ++i) {
    for (const bool is_top : {true, false}) {
      for (const bool is_right : {true, false}) {
        const double left = is_right ? 1 - width : 0, low = is_top ? 1 - height : 0;
        if (is_free(drawing.panels[i], {left, left + width, low, low + height})) return Corner{i, is_right, is_top};
      }
    }
  }
  return std::nullopt;
}

std::string picture_number(double value) { return fmt::format("{:.9g}", value); }

}  // namespace tearless::harness
