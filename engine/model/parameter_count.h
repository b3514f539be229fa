// Counts the parameters of a model without allocating them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>

#include "base/settings.h"
#include "engine/model/parameters.h"

namespace tearless::engine {

/// Numbers of parameters by a text of everything that they depend on, for the life of the process. Thread-safe.
class ParameterCounts {
 public:
  /// The number that is known for `key`; otherwise counts the parameters that `declare_all` declares.
  int64_t get(const std::string& key, const std::function<void(Parameters&)>& declare_all);

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> known_;
};

/// The number of parameters of a model, which depends on its settings `options` and on `sizes`, those of its data.
/// `declare_all` constructs the model. Constructed once in a process for equal arguments: `check` answers for 100,000
/// runs that share a few models.
template <class Options, class DeclareAll>
int64_t count_once(const Options& options, std::initializer_list<int64_t> sizes, DeclareAll declare_all) {
  static ParameterCounts counts;  // of this kind of model: each call is an instantiation of its own
  Options described = options;
  std::string key = canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { describe(v, described); });
  for (const int64_t size : sizes) key += fmt::format("{}\n", size);
  return counts.get(key, declare_all);
}

}  // namespace tearless::engine
