// Results that a process computes once: `check` answers for 100,000 runs that share a few files and models.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

namespace tearless::engine {

/// The newest `entries` results by what they were computed from. Thread-safe.
template <class Key, class Value>
class Cache {
 public:
  explicit Cache(size_t entries) : max_entries_(entries) {}

  /// The result for `key`: `compute()`, if it is not known.
  template <class Compute>
  Value get(const Key& key, Compute&& compute) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, value] : entries_) {
      if (known == key) return value;
    }
    Value value = compute();
    entries_.emplace_back(key, value);
    if (entries_.size() > max_entries_) entries_.pop_front();
    return value;
  }

 private:
  size_t max_entries_;
  std::mutex mutex_;
  std::deque<std::pair<Key, Value>> entries_;
};

}  // namespace tearless::engine
