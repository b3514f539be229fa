// How the words of a command line name an axis, a label or a score: as the grid has it, or in print.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/spelling.h"
#include "harness/grid/names.h"

namespace tearless::harness {

struct Called {
  std::string name, in_print;

  bool is(const std::string& word) const { return name == word || in_print == word || is_same_value(name, word); }
};

/// A label on an axis.
struct CalledLabel {
  Called axis, label;

  CalledLabel(const Names& names, const std::string& on, const std::string& is)
      : axis{on, name_of(names, on).text}, label{is, name_of(names, on, is).text} {}
};

/// The names that `of` gives of each of `all`, each once, in their order.
template <class All, class Of>
std::vector<std::string> each_once(const All& all, Of of) {
  std::vector<std::string> names;
  for (const auto& one : all) {
    for (const std::string& name : std::invoke(of, one)) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace tearless::harness
