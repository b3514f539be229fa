// What a view says in vain.
#pragma once

#include <string>

namespace tearless::harness {

/// A key of a view that changes nothing that is printed. `plan` names it.
struct IdleKey {
  std::string key;             // "[table] best (grid.toml:7)"
  std::string because = {};    // what switches it off; "": nothing is there that it acts on
  bool unless_claims = false;  // that are about the view
};

}  // namespace tearless::harness
