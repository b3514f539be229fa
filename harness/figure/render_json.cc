// JSON: the points of a figure with its texts, numbers in full precision.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/figure/figure.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

/// A number, or the label that stands there.
json json_of_x(const Figure& figure, double x) {
  return figure.labels.empty() ? json(x) : json(figure.labels.at(static_cast<size_t>(x) - 1).label);
}

json json_of(const Figure& figure, const Figure::Line& line) {
  json labels = json::object(), points = json::array(), diverged = json::array();
  for (size_t i = 0; i < std::min(figure.axes.size(), line.labels.size()); ++i) labels[figure.axes[i]] = line.labels[i];
  for (const BandPoint& point : points_in_order(line)) {
    points.push_back({{"x", json_of_x(figure, point.x)},
                      {"mean", point.mean},
                      {"low", point.low},
                      {"high", point.high},
                      {"runs", line.source.empty() ? json(point.runs) : json()}});
  }
  for (const CurvePoint& end : line.diverged) diverged.push_back({{"x", json_of_x(figure, end.x)}, {"y", end.y}});
  return {{"labels", labels}, {"y", line.y}, {"source", line.source}, {"points", points}, {"diverged", diverged}};
}

json json_of(const Figure& figure) {
  json panels = json::array(), notes = json::array();
  for (const Figure::Panel& panel : figure.panels) {
    json lines = json::array();
    for (const Figure::Line& line : panel.lines) lines.push_back(json_of(figure, line));
    panels.push_back({{"title", panel.title.text}, {"y", panel.y.text}, {"lines", std::move(lines)}});
  }
  for (const Name& note : figure.notes) notes.push_back(note.text);
  return {{"name", figure.name},
          {"title", figure.title.text},
          {"x", figure.x.text},
          {"panels", std::move(panels)},
          {"notes", std::move(notes)}};
}

}  // namespace

nlohmann::json json_of(const std::vector<Figure>& figures) {
  json all = json::array();
  for (const Figure& figure : figures) all.push_back(json_of(figure));
  return all;
}

}  // namespace tearless::harness
