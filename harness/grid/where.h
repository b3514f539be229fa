// Some points of some axes of a grid: which of its runs, or of the cells and places that are made of them, are meant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tearless::harness {

struct Grid;

struct Where {
  std::map<std::string, std::set<std::string>> labels = {};  // axis → those of its labels that are meant; others: all

  bool has(const std::string& axis, const std::string& label) const {
    const auto own = labels.find(axis);
    return own == labels.end() || own->second.contains(label);
  }

  /// Whether it has the labels of a run, axis → label, on all of its axes.
  bool has(const auto& run) const {
    return std::ranges::all_of(labels, [&](const auto& own) {
      const auto label = std::ranges::find_if(run, [&](const auto& one) { return one.first == own.first; });
      return label != run.end() && own.second.contains(label->second);
    });
  }

  /// The same of a combination (Combination::index).
  bool has_point(const Grid& grid, const std::vector<uint32_t>& index) const;
};

}  // namespace tearless::harness
