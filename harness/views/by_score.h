// What a grid file says for each score: a table of score, or pattern, = value.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/pattern.h"

namespace tearless::harness {

/// The entry of a score: by its name, else by the longest pattern that it matches, so that "*" is for all others. Null:
/// there is none.
template <class Value>
const Value* entry_of(const std::map<std::string, Value>& entries, const std::string& score) {
  if (const auto it = entries.find(score); it != entries.end()) return &it->second;
  const std::pair<const std::string, Value>* longest = nullptr;
  for (const auto& entry : entries) {
    if (!matches_pattern(entry.first, score)) continue;
    if (!longest || entry.first.size() > longest->first.size()) longest = &entry;
  }
  return longest ? &longest->second : nullptr;
}

}  // namespace tearless::harness
