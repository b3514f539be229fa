// Counts the parameters of a model without allocating them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/settings.h"
#include "engine/model/parameters.h"
#include "engine/ops/cache.h"

namespace tearless::engine {

/// The number of parameters of a model, which depends on its settings `options` and on `sizes`, those of its data.
/// `declare_all` constructs the model, once in a process for equal arguments.
template <class Options, class DeclareAll>
int64_t count_once(const Options& options, std::initializer_list<int64_t> sizes, DeclareAll declare_all) {
  static Cache<std::string, int64_t> counts(/*entries=*/256);  // of this kind of model
  Options described = options;
  std::string key = canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { describe(v, described); });
  for (const int64_t size : sizes) key += fmt::format("{}\n", size);
  return counts.get(key, [&] {
    Parameters parameters(/*seed=*/0, at::kCPU);
    declare_all(parameters);
    return parameters.count();
  });
}

}  // namespace tearless::engine
