#include "harness/figure/figure_notes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/words.h"
#include "harness/figure/band.h"
#include "harness/results/curves.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

/// A sentence for each line that some runs lack, and one for those that all lack. With panels it is that with the
/// fewest runs.
void add_incomplete(const Grid& grid, const FigureSpec& spec, const FigureRuns& runs, Figure& figure) {
  struct Count {
    size_t least = 0, most = 0, of = 0;
    std::string done;  // a run that is done without its curve
  };
  std::map<size_t, Count> lines;
  for (const auto& [place, expected] : runs.reading.expected) {
    std::set<std::string> there = expected;
    const auto drawn = runs.reading.drawn.find(place);
    std::erase_if(there, [&](const std::string& run) {
      const bool is_drawn = drawn != runs.reading.drawn.end() && drawn->second.contains(run);
      return !is_drawn && !runs.reading.diverged.contains(run);  // of those that diverged a note says so
    });
    const auto [entry, is_new] = lines.emplace(place.second, Count{there.size(), there.size(), expected.size(), ""});
    Count& count = entry->second;
    count.least = std::min(count.least, there.size());
    count.most = std::max(count.most, there.size());
    const auto without = runs.reading.without.find(place);
    if (without == runs.reading.without.end()) continue;
    const size_t y = runs.places.panels[place.first].y.value_or(runs.places.lines[place.second].y.value_or(0));
    count.done = fmt::format("; {} is done without {}", without->second, name_of(grid.names, spec.y[y]).text);
  }
  std::vector<std::string> empty, ended;  // all of whose runs have ended
  for (const auto& [line, count] : lines) {
    const std::string text = joined_labels(figure.heading, figure.legend[line]).text;
    if (count.most == 0 && count.done.empty()) {
      (runs.reading.waited_for.contains(line) ? empty : ended).push_back(text.empty() ? "all" : text);
    } else if (count.least < count.of) {
      figure.notes.push_back({fmt::format("{}{} of {} drawn{}.", text.empty() ? "" : text + ": ", count.least,
                                          counted(static_cast<int64_t>(count.of), "run"),
                                          count.done.empty() ? ", the others have nothing to draw" : count.done)});
    }
  }
  if (!empty.empty()) figure.notes.push_back({fmt::format("No run to draw yet: {}.", fmt::join(empty, "; "))});
  if (!ended.empty()) {
    figure.notes.push_back(
        {fmt::format("No run to draw, as all have failed or were cancelled: {}.", fmt::join(ended, "; "))});
  }
}

/// "update 12", "epoch = 3"
std::string place_text(const FigureSpec& spec, const Figure& figure, double x) {
  return spec.x == FigureSpec::X::kUpdates ? fmt::format("update {:.0f}", x)
                                           : fmt::format("{} = {:.4g}", figure.x.text, x);
}

/// "the mean of 3 seeds to update 12, then of 2 (not drawn)", "the mean of 2 seeds, of 1 at 4 points from update 3 to
/// update 6 (dashed)"; "" if it is of all of them everywhere.
std::string text_of_fewer(const FigureSpec& spec, const Figure& figure, const Figure::Line& line, bool ends) {
  std::vector<BandPoint> whole, fewer;
  for (const BandPoint& point : line.points) {
    if (point.runs > 0) (point.is_of_fewer ? fewer : whole).push_back(point);
  }
  if (whole.empty() || fewer.empty()) return "";
  const auto [least, most] = std::ranges::minmax(fewer, {}, &BandPoint::runs);
  const double first = whole.front().x, last = whole.back().x;
  const bool has_before = fewer.front().x < first;
  const bool has_after = fewer.back().x > last;
  const bool is_within =
      std::ranges::any_of(fewer, [&](const auto& point) { return first < point.x && point.x < last; });
  constexpr double kSaid = 0.95;  // the hours and epochs of seeds differ a little in any case
  const double length = line.points.back().x - line.points.front().x;
  if (spec.x != FigureSpec::X::kUpdates && !is_within && last - first > kSaid * length) return "";
  const auto place = [&](const BandPoint& point) { return place_text(spec, figure, point.x); };
  const std::string of_fewer = fmt::format("of {}{}", most.runs, least.runs < most.runs ? " or fewer" : "");
  std::string where;
  if (fewer.size() == 1 && is_within) {
    where = fmt::format(", {} at {}", of_fewer, place(fewer.front()));
  } else if (is_within) {
    where = fmt::format(", {} at {} from {} to {}", of_fewer, counted(std::ssize(fewer), "point"), place(fewer.front()),
                        place(fewer.back()));
  } else {
    where = fmt::format("{}{}, {} {}", has_before ? " from " + place(whole.front()) : "",
                        has_after ? " to " + place(whole.back()) : "", has_before ? "elsewhere" : "then", of_fewer);
  }
  return fmt::format("the mean of {}{} ({})", counted(whole.front().runs, "seed"), where,
                     ends ? "not drawn" : "dashed");
}

/// A sentence for all lines, of which it is as true.
void add_fewer(const FigureSpec& spec, const Reading& reading, Figure& figure) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const Figure::Panel& panel : figure.panels) {
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      const std::string text = text_of_fewer(spec, figure, panel.lines[i], ends_at_fewer(spec, reading, i));
      if (!text.empty())
        lines[text].push_back(joined_labels({}, {panel.title, joined_labels(figure.heading, figure.legend[i])}).text);
    }
  }
  for (auto& [text, names] : lines) {
    if (names.front().empty()) names.front() = kind_of(spec.kind).lines;
    figure.notes.push_back({fmt::format("{}: {}.", fmt::join(names, "; "), text)});
  }
}

/// Of measured lines.
size_t most_runs_of_a_point(const Figure& figure) {
  size_t most = 0;
  for (const Figure::Panel& panel : figure.panels) {
    for (const Figure::Line& line : panel.lines) {
      for (const BandPoint& point : line.points) {
        if (line.source.empty()) most = std::max(most, static_cast<size_t>(point.runs));
      }
    }
  }
  return most;
}

}  // namespace

bool ends_at_fewer(const FigureSpec& spec, const Reading& reading, size_t line) {
  return spec.ends_at_fewer && !reading.waited_for.contains(line);
}

void add_notes(const Grid& grid, const FigureSpec& spec, const FigureRuns& runs, Figure& figure) {
  std::vector<Name>& notes = figure.notes;
  const Reading& reading = runs.reading;
  const FigureKind& kind = kind_of(spec.kind);
  const size_t seeds = std::min(grid.seeds.size(), most_runs_of_a_point(figure));
  const bool has_band = std::ranges::any_of(figure.panels, [](const Figure::Panel& panel) {
    return std::ranges::any_of(panel.lines, [](const Figure::Line& line) {
      return std::ranges::any_of(line.points, [](const BandPoint& point) { return point.low < point.high; });
    });
  });
  if (!spec.line_for_each_run && seeds > 1) {
    notes.push_back({fmt::format("{}: the mean of {}{}.", kind.lines, counted(static_cast<int64_t>(seeds), "seed"),
                                 has_band ? fmt::format("; {}: {}", kind.bands, text_of(spec.band)) : "")});
  } else if (!spec.line_for_each_run && seeds == 1) {
    notes.push_back({fmt::format("{}: one seed.", kind.lines)});
  }
  if (spec.smooth > 1)
    notes.push_back({fmt::format("Of each run, a point is the mean of {} reported values about it.", spec.smooth)});
  if (spec.bins)
    notes.push_back({fmt::format("Of each run, a point is the mean in one of {} equal parts of x.", *spec.bins)});
  if (!spec.bins && reading.each > 1) {
    notes.push_back({fmt::format("Of runs with more than {} values, a point is the mean of up to {}.",
                                 CurveCollector::kMaxPoints, reading.each)});
  }
  if (!reading.diverged.empty()) {
    notes.push_back({fmt::format("×: {} diverged, in no mean unless all of a line have.",
                                 counted(static_cast<int64_t>(reading.diverged.size()), "run"))});
  }
  if (!reading.below.empty()) {
    notes.push_back(
        {fmt::format("{} with {}, which fail by the table, in no mean.",
                     counted(static_cast<int64_t>(reading.below.size()), "run"), fmt::join(reading.limits, " or "))});
  }
  std::vector<Name> sources;
  for (const FigureSpec::PublishedLine& published : spec.published) {
    if (std::ranges::find(sources, published.source) == sources.end()) sources.push_back(published.source);
  }
  if (!sources.empty()) notes.push_back(joined({{"Published: "}, joined(sources, "; "), {"."}}, ""));
  if (reading.lacks_metric) notes.push_back({"Gradient norms are not here: this is a copy of results alone."});
  for (const std::string& why : reading.stale) notes.push_back({fmt::format("Some runs are stale: {}.", why)});
  add_fewer(spec, reading, figure);
  add_incomplete(grid, spec, runs, figure);
}

}  // namespace tearless::harness
