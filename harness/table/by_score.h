// What a grid file says for each score: a table of score, or pattern, = value. Internal to harness/table.
#pragma once

#include <map>
#include <string>

#include "base/pattern.h"

namespace tearless::harness {

/// The entry of a score: by its name, else by the first pattern that it matches. Null: there is none.
template <class Value>
const Value* entry_of(const std::map<std::string, Value>& entries, const std::string& score) {
  if (const auto it = entries.find(score); it != entries.end()) return &it->second;
  for (const auto& [pattern, value] : entries) {
    if (matches_pattern(pattern, score)) return &value;
  }
  return nullptr;
}

}  // namespace tearless::harness
