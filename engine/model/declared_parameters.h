// The parameters that a model declares, without allocating them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "base/settings.h"
#include "engine/model/parameters.h"
#include "engine/ops/cache.h"

namespace tearless::engine {

/// The parameters of a model, which depend on its settings `options` and on `sizes`, those of its data.
/// `declare_all` constructs the model, once in a process for equal arguments.
template <class Options, class DeclareAll>
DeclaredParameters declared_once(const Options& options, std::initializer_list<int64_t> sizes, DeclareAll declare_all) {
  static Cache<std::string, DeclaredParameters> known(/*entries=*/256);  // of this kind of model
  Options described = options;
  std::string key = canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { describe(v, described); });
  for (const int64_t size : sizes) key += fmt::format("{}\n", size);
  return known.get(key, [&] {
    const auto parameters = std::make_shared<Parameters>(/*seed=*/0, at::kCPU);
    declare_all(*parameters);
    return parameters;
  });
}

/// The same of a `Model` that is constructed from these sizes as they are.
template <class Model, class Options, class... Sizes>
DeclaredParameters declared(const Options& options, Sizes... sizes) {
  return declared_once(options, {sizes...}, [&](Parameters& parameters) {
    const Model model(parameters, options, sizes..., /*dropout_seed=*/0);
  });
}

}  // namespace tearless::engine
