#include "harness/statistics/looks.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "harness/statistics/normals.h"
#include "harness/statistics/paths.h"

namespace tearless::harness {
namespace {

constexpr size_t kPaths = 1'000'000;
constexpr size_t kPilotPaths = 100'000;  // that choose the worst of the ratios
constexpr uint64_t kSeed = 1977;
constexpr double kUsualLevel = 0.05;

/// The least p that each path has at any look, where that is at most `cap`, ascending; for each ratio of the
/// deviations, as of welch_path().
std::vector<std::vector<double>> least_p(std::span<const size_t> looks, double cap, Sides sides,
                                         std::span<const double> ratios, size_t paths) {
  const bool one_cell = ratios.back() == 0;
  const double tails = sides == Sides::kTwo ? 2 : 1;
  std::array<double, kMaxLooks> threshold = {};  // below it t² is above `cap` for any degrees of freedom
  for (size_t look = 0; look < looks.size(); ++look) {
    const FastStudentsT t((one_cell ? 1 : 2) * static_cast<double>(looks[look] - 1));
    threshold[look] = std::pow(boost::math::quantile(boost::math::complement(t, cap / tails)), 2);
  }
  std::vector<std::vector<double>> least(ratios.size());
  Normals normals(kSeed);
  for (size_t path = 0; path < paths; ++path) {
    const MomentsAtLooks a = draw_cell(looks, normals);
    const MomentsAtLooks b = one_cell ? MomentsAtLooks() : draw_cell(looks, normals);
    for (size_t i = 0; i < ratios.size(); ++i) {
      double p = 1;
      for (size_t look = 0; look < looks.size(); ++look) {
        const WelchPath seen = welch_path(a[look], b[look], ratios[i], looks[look]);
        const double square = seen.difference * seen.difference;
        if (square < threshold[look] * seen.error || (sides == Sides::kOne && seen.difference < 0)) continue;
        p = std::min(p, tails * seen.tail(std::abs(seen.difference)));
      }
      if (p <= cap) least[i].push_back(p);
    }
  }
  for (std::vector<double>& of_ratio : least) std::ranges::sort(of_ratio);
  return least;
}

/// The largest multiple of 10⁻⁶ that no more than `level` of the paths reach.
double level_of(std::span<const double> least, size_t paths, double level) {
  const auto allowed = static_cast<size_t>(level * static_cast<double>(paths));
  if (least.size() <= allowed) return level;
  return std::min(level, (std::ceil(least[allowed] * 1e6) - 1) / 1e6);
}

std::vector<size_t> distinct(std::span<const size_t> n) {
  std::vector<size_t> looks(n.begin(), n.end());
  looks.erase(std::unique(looks.begin(), looks.end()), looks.end());
  return looks;
}

std::mutex mutex;  // of what is remembered

/// Remembered: what is simulated for one level serves all that are smaller, as Holm's correction asks for them.
const std::vector<std::vector<double>>& remembered(std::span<const size_t> looks, double level, Sides sides,
                                                   const std::vector<double>& ratios, size_t paths) {
  using Key = std::tuple<std::vector<size_t>, double, Sides, std::vector<double>>;
  static std::map<Key, std::vector<std::vector<double>>> known;
  const double cap = std::max(level, kUsualLevel);
  const Key key = {{looks.begin(), looks.end()}, cap, sides, ratios};
  const auto at = known.find(key);
  if (at != known.end()) return at->second;
  return known.emplace(key, least_p(looks, cap, sides, ratios, paths)).first->second;
}

}  // namespace

double constant_level(std::span<const size_t> n, double level, Sides sides, Design design) {
  const std::vector<size_t> looks = distinct(n);
  if (looks.size() == 1) return level;
  const std::scoped_lock lock(mutex);
  double worst = 0;
  if (design == Design::kWelch) {
    const std::vector<double> ratios = {1, 2, 3, 5, 10};
    const auto& pilots = remembered(looks, level, sides, ratios, kPilotPaths);
    worst = *std::ranges::min_element(ratios, {}, [&](const double& ratio) {
      return level_of(pilots[static_cast<size_t>(&ratio - ratios.data())], kPilotPaths, level);
    });
  }
  return level_of(remembered(looks, level, sides, {worst}, kPaths).front(), kPaths, level);
}

double level_of_all(std::span<const size_t> n, double level) {
  const std::vector<size_t> looks = distinct(n);
  if (looks.size() == 1) return level;
  const std::scoped_lock lock(mutex);
  const std::vector<double>& least = remembered(looks, level, Sides::kTwo, {0}, kPaths).front();
  return static_cast<double>(std::ranges::upper_bound(least, level) - least.begin()) / kPaths;
}

}  // namespace tearless::harness
