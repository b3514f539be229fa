// The kinds of norm that a model can have (model.norm.kind).
//
// To add a kind:
//   1. a file beside this one that defines `NormKind <name>_kind()` with its formula;
//   2. a line NORM(<name>) in norms.def.
// It is then a legal model.norm.kind, listed on the generated settings page and covered by the tests that all kinds
// share (tests/engine/norm/). With `row` it runs as a fused kernel, without it by its formula. Placement (post, pre) is
// not here: engine/model/residual.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "engine/ops/add_norm.h"

namespace tearless::engine {

struct NormKind {
  enum class Gain { kNone, kScalar, kChannel };  // no gain, one number, one number a channel

  std::string_view name = {};     // set from norms.def
  std::string_view meaning = {};  // formula and source, for the settings page
  Gain gain = Gain::kNone;
  bool bias = false;
  double (*initial_gain)(int64_t d_model) = [](int64_t) { return 1.0; };
  double default_eps = 1e-5;
  /// The norm as a fused kernel takes it (eps is set by make()); absent: the norm runs by its formula.
  std::optional<RowNorm> row = std::nullopt;
  /// x [T, D] → [T, D]; gain [D] or [1], bias [D]: undefined where the kind has none.
  at::Tensor (*formula)(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) = nullptr;

  /// Elements of the gain: 0, 1 or d_model.
  int64_t gain_size(int64_t d_model) const;
  /// The norm with its parameters, as add_norm() takes it.
  NormOp make(Value gain_value, Value bias_value, double eps) const;
};

/// All kinds, in the order of norms.def.
std::span<const NormKind> norm_kinds();
/// The kind called `name`. REQUIRES: it exists (the settings reader checks that).
const NormKind& norm_kind(std::string_view name);

/// The settings [model.norm].
struct NormOptions {
  std::string kind = "layer_norm";
  std::optional<double> eps;  // ε of the norm; unset: the kind's default_eps

  double eps_of_kind() const { return eps.value_or(norm_kind(kind).default_eps); }
};
void describe(SettingsVisitor& visitor, NormOptions& options);

}  // namespace tearless::engine
