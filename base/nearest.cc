#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tearless {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr size_t kMaxNameLength = 100;  // bounds the quadratic time of edit_distance()
  if (name.size() > kMaxNameLength) return "";
  std::string best;
  size_t best_distance = name.size() / 3 + 2;  // at this distance and beyond it is another word, not a typing error
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxNameLength) continue;
    size_t distance = edit_distance(name, candidate);
    if (last_part(name) == last_part(candidate)) distance = std::min(distance, size_t{1});
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string best = nearest(name, candidates);
  return best.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", best);
}

}  // namespace tearless
