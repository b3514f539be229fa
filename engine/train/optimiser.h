// The kinds of optimiser that training can have (train.optimiser.kind).
//
// To add a kind:
//   1. a file beside this one with a class derived from OptimiserKindOf and a function `<name>_optimiser()` that makes
//      one. A file may hold several kinds of one family;
//   2. a line OPTIMISER(<name>) in optimisers.def.
// It is then a legal train.optimiser.kind, listed on the generated settings page. A kind that has options of its own
// describes them: they are the settings train.optimiser.<name>.<option>. A kind of Adam runs as a fused kernel, another
// one by its formula, which is slower and on a GPU not captured. Clipping and weight decay are the same for all kinds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kinds.h"
#include "base/settings.h"
#include "engine/ops/adam.h"

namespace tearless::engine {

/// The smallest ε: 0 / 0 would be the step of a parameter whose gradients were all 0, such as the embedding of a word
/// that has not come yet.
inline constexpr double kMinEps = 1e-30;

/// [train.adam] (docs/spec/training.md §1.5)
struct AdamOptions {
  double beta1 = 0.9;    // decay of the first moment
  double beta2 = 0.999;  // decay of the second moment
  double eps = 1e-8;     // added outside the root
};

class OptimiserKind {
 public:
  virtual ~OptimiserKind() = default;
  virtual std::unique_ptr<OptimiserKind> clone() const = 0;

  // What a kind states of itself, set in its constructor.
  std::string_view name = {};     // set from optimisers.def
  std::string_view meaning = {};  // formula and source, for the settings page
  int64_t buffers = 2;            // that it keeps from update to update, [P] each, initially 0
  /// Of a kind of Adam, to which train.adam applies and whose buffers are the first and the second moment: the number
  /// that ε is added to. Of another kind nothing: formula() makes its updates.
  std::optional<AdamEps> adam = std::nullopt;

  /// Describes the options of this kind alone, as one table. `switched_off_by`: that of each Field.
  virtual void describe_own(SettingsVisitor& /*visitor*/, std::string_view /*switched_off_by*/) {}
  /// θ ← θ - lr · …, where `adam` is nothing. All tensors are [P]; the gradients are clipped. Updates parameters and
  /// buffers in place.
  virtual void formula(double /*learning_rate*/, const at::Tensor& /*gradients*/, at::Tensor& /*parameters*/,
                       std::vector<at::Tensor>& /*buffers*/) const {
    std::abort();  // a kind has `adam` or this
  }
};

/// The base of every kind.
template <class Kind>
using OptimiserKindOf = KindOf<OptimiserKind, Kind>;

/// All kinds with their options at their defaults, in the order of optimisers.def.
const Kinds<OptimiserKind>& optimiser_kinds();

/// [train.optimiser]
struct OptimiserOptions {
  std::string kind = "adam";
  double weight_decay = 0;  // decoupled: θ decreases by lr · weight_decay · θ at each update, before the step
  double l2 = 0;            // ½ · l2 · ‖θ‖² of the loss: gradients grow by l2 · θ, after clipping

  /// The chosen kind, with the values of its own options.
  const OptimiserKind& chosen() const { return kinds_.at(kind); }

 private:
  friend void describe(SettingsVisitor& visitor, OptimiserOptions& options);
  Kinds<OptimiserKind> kinds_ = optimiser_kinds();  // one of each kind: a grid may set options of several kinds
};
void describe(SettingsVisitor& visitor, OptimiserOptions& options);

struct TrainOptions;

/// What an optimiser keeps from update to update.
struct OptimiserState {
  std::vector<at::Tensor> buffers;  // [P] each
  /// As they are before the first update.
  OptimiserState(const OptimiserKind& kind, const at::Tensor& parameters);
};

/// The arguments of an update of Adam. REQUIRES: the chosen kind has OptimiserKind::adam
/// (std::bad_optional_access).
AdamStep adam_step_of(const TrainOptions& train, double learning_rate, int64_t update);

/// Divides the gradients [P], clips them, adds that of L2, and makes update `update`, counted from 1; the gradients are
/// zero afterwards. `gradient_norm`: that of the divided gradients.
void optimiser_step(const TrainOptions& train, double learning_rate, int64_t update, double gradient_norm,
                    double gradient_divisor, at::Tensor& gradients, at::Tensor& parameters, OptimiserState& state);

}  // namespace tearless::engine
