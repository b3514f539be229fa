#include "base/pattern.h"

#include <cstddef>
#include <vector>

namespace tearless {

bool matches_pattern(std::string_view pattern, std::string_view name) {
  // Greedy matching with backtracking to the last star only. Text that an earlier star could match can be matched by
  // the last one as well, so no other backtracking is needed.
  size_t p = 0;
  size_t n = 0;
  size_t after_star = std::string_view::npos;  // in the pattern
  size_t taken = 0;                            // end, in the name, of the text that the star matches
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool patterns_meet(std::string_view a, std::string_view b) {
  // meets[j]: some text matches both a[i..] and b[j..]; from the ends of both backwards.
  std::vector<bool> meets(b.size() + 1), after(b.size() + 1);  // of i, and of i + 1
  for (size_t i = a.size() + 1; i-- > 0; after = meets) {
    for (size_t j = b.size() + 1; j-- > 0;) {
      const bool a_ends = i == a.size(), b_ends = j == b.size();
      const bool a_star = !a_ends && a[i] == '*', b_star = !b_ends && b[j] == '*';
      meets[j] = (a_ends && b_ends) || (a_star && (after[j] || (!b_ends && meets[j + 1]))) ||
                 (b_star && (meets[j + 1] || (!a_ends && after[j]))) ||
                 (!a_ends && !b_ends && a[i] == b[j] && after[j + 1]);
    }
  }
  return meets[0];
}

}  // namespace tearless
