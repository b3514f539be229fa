// What a kind of norm is. A new kind is one file beside this one, with its formula, and one line in norms.def: it is
// then a legal model.norm.kind, in `check`, in the generated settings page and under the tests that all kinds share.
// How fast it runs is a second question: with `row` it is fused, without it runs by its formula. Not here: where a norm
// stands (engine/model/residual.h). Tested by tests/engine/norm/.
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
  enum class Gain { kNone, kScalar, kChannel };

  std::string_view name = {};     // filled from norms.def
  std::string_view meaning = {};  // formula and source, for the settings page
  Gain gain = Gain::kNone;
  bool bias = false;
  double (*initial_gain)(int64_t d_model) = [](int64_t) { return 1.0; };
  double default_eps = 1e-5;
  /// How one row is treated (its eps is filled from the settings), where a row norm can say it.
  std::optional<RowNorm> row = std::nullopt;
  /// x [T, D] → [T, D]; gain [D] or [1], bias [D]: undefined where the kind has none.
  at::Tensor (*formula)(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) = nullptr;

  int64_t gain_size(int64_t d_model) const;
  /// The norm as the operations see it.
  NormOp make(Value gain_value, Value bias_value, double eps) const;
};

/// All kinds, in the order of norms.def.
std::span<const NormKind> norm_kinds();
/// The kind of that name, which must exist (the settings reader has checked it).
const NormKind& norm_kind(std::string_view name);

/// [model.norm]
struct NormOptions {
  std::string kind = "layer_norm";
  std::optional<double> eps;  // unset: the kind's own

  double eps_of_kind() const { return eps.value_or(norm_kind(kind).default_eps); }
};
void describe(SettingsVisitor& visitor, NormOptions& options);

}  // namespace tearless::engine
