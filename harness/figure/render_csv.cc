// CSV: one line for each point of a line, numbers in full precision.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "harness/figure/figure.h"

namespace tearless::harness {
namespace {

/// The axes of all figures, each once, and its place among them.
struct AxisColumns {
  std::vector<std::string> names = {};
  std::map<std::string, size_t> places = {};

  explicit AxisColumns(const std::vector<Figure>& figures) {
    for (const Figure& figure : figures) {
      for (const std::string& axis : figure.axes) {
        if (places.emplace(axis, names.size()).second) names.push_back(axis);
      }
    }
  }
};

void add_csv(const Figure& figure, const Figure::Line& line, const AxisColumns& axes, Formulas formulas,
             std::string& text) {
  std::vector<std::string> labels(axes.names.size());
  for (size_t i = 0; i < std::min(figure.axes.size(), line.labels.size()); ++i)
    labels[axes.places.at(figure.axes[i])] = line.labels[i];
  // `numbers`: mean, low, high, runs.
  const auto add = [&](double x, const std::array<std::string, 4>& numbers, const std::string& diverged) {
    std::vector<std::string> cells = {figure.name.empty() ? figure.title.text : figure.name};
    cells.insert(cells.end(), labels.begin(), labels.end());
    cells.push_back(line.y);
    const auto label = static_cast<size_t>(x) - 1;
    cells.push_back(figure.labels.empty() ? fmt::format("{}", x) : figure.labels.at(label).label);
    cells.insert(cells.end(), numbers.begin(), numbers.end());
    cells.insert(cells.end(), {line.source, diverged});
    text += csv_line(cells, formulas);
  };
  for (const BandPoint& point : points_in_order(line)) {
    add(point.x,
        {fmt::format("{}", point.mean), fmt::format("{}", point.low), fmt::format("{}", point.high),
         line.source.empty() ? std::to_string(point.runs) : ""},
        "");
  }
  for (const CurvePoint& end : line.diverged) add(end.x, {"", "", "", "0"}, fmt::format("{}", end.y));
}

}  // namespace

std::vector<BandPoint> points_in_order(const Figure::Line& line) {
  std::vector<BandPoint> points;
  std::ranges::merge(line.points, line.not_drawn, std::back_inserter(points), {}, &BandPoint::x, &BandPoint::x);
  std::erase_if(points, [](const BandPoint& point) { return point.runs == 0; });
  return points;
}

std::string render_csv(const std::vector<Figure>& figures, Formulas formulas) {
  const AxisColumns axes(figures);
  // The columns of every figure keep their names; an axis that is called as one of them gets another, as in tables.
  std::vector<std::string> header = {"figure", "y", "x", "mean", "low", "high", "runs", "source", "diverged"};
  const auto of_every_figure = std::ssize(header);
  header.insert(header.end(), axes.names.begin(), axes.names.end());
  header = distinct_names(std::move(header));
  std::rotate(header.begin() + 1, header.begin() + of_every_figure, header.end());
  std::string text = csv_header(std::move(header), formulas);
  for (const Figure& figure : figures) {
    for (const Figure::Panel& panel : figure.panels) {
      for (const Figure::Line& line : panel.lines) add_csv(figure, line, axes, formulas, text);
    }
  }
  return text;
}

}  // namespace tearless::harness
