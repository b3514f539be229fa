#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tearless {
namespace {

// Inserted, missing and wrong letters, two neighbours that changed places, and parts in a row that `a` lacks ("norm."
// of model.norm.kind) cost one each.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last, last, row(b.size() + 1);
  for (size_t i = 0; i <= a.size(); ++i) {
    size_t least_before_a_part = row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = row[j - 1] + 1;
      if (i > 0) row[j] = std::min({row[j], last[j] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      if (b[j - 1] == '.') {
        row[j] = std::min(row[j], least_before_a_part + 1);
        least_before_a_part = std::min(least_before_a_part, row[j]);
      }
    }
    before_last = std::exchange(last, row);
  }
  return last.back();
}

size_t longest_part(std::string_view name) {
  size_t longest = 0, begin = 0;
  for (size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && name[i] != '.') continue;
    longest = std::max(longest, i - begin);
    begin = i + 1;
  }
  return longest;
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr size_t kMaxNameLength = 100;  // bounds the quadratic time of edit_distance()
  if (name.size() > kMaxNameLength) return "";
  std::string best;
  // At this distance and beyond it is another name, not a typing error: in a long name no part may be exchanged.
  size_t best_distance = longest_part(name) / 3 + 2;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxNameLength) continue;
    const size_t distance = edit_distance(name, candidate);
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
