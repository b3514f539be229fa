// The kinds of norm that a model can have (model.norm.kind).
//
// To add a kind:
//   1. a file beside this one with a class derived from NormKindOf and a function `<name>_kind()` that makes one. A
//      file may hold several kinds of one family;
//   2. a line NORM(<name>) in norms.def.
// It is then a legal model.norm.kind, listed on the generated settings page and covered by the tests that all kinds
// share (tests/engine/norm/). A kind that has options of its own describes them in describe_own(), as ada_norm does:
// they are the settings model.norm.<name>.<option>. With row() it runs as a fused kernel, without it by its formula.
// Placement (post, pre) is not here: engine/model/residual.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kinds.h"
#include "base/settings.h"
#include "engine/ops/add_norm.h"

namespace tearless::engine {

/// How ε enters the denominator, with s the deviation (or the root mean square) of the row (docs/spec/knobs.md §2.1).
enum class EpsMode {
  kSqrtAdd,  // √(s² + ε)
  kStdAdd,   // s + ε
  kClamp     // max(s, ε)
};
/// The divisor of s²: d, or d - 1 where the mean is subtracted.
enum class Deviation { kBiased, kUnbiased };

/// The denominator of a norm's rows.
struct NormDenominator {
  double eps = 0;
  EpsMode eps_mode = EpsMode::kSqrtAdd;
  Deviation deviation = Deviation::kBiased;

  /// The same as the kernels take it, for a root of mean squares.
  RowNorm::Denominator of_row() const;
  bool unbiased() const { return deviation == Deviation::kUnbiased; }
  /// 1 / denominator of centred rows [T, D]: [T, 1]. For formulas.
  at::Tensor inverse_of(const at::Tensor& centred) const;
};

class NormKind {
 public:
  enum class Gain { kNone, kScalar, kChannel };  // no gain, one number, one number a channel

  virtual ~NormKind() = default;
  virtual std::unique_ptr<NormKind> clone() const = 0;

  // What a kind states of itself, set in its constructor.
  std::string_view name = {};     // set from norms.def
  std::string_view meaning = {};  // formula and source, for the settings page
  Gain gain = Gain::kNone;
  bool bias = false;
  double default_eps = 1e-5;
  bool has_eps = true;         // model.norm.eps applies
  bool has_eps_mode = false;   // model.norm.eps_mode applies
  bool has_deviation = false;  // model.norm.deviation applies
  /// The kind that replaces this one as the decoder's last norm if the model has FixNorm; "": none does.
  std::string_view before_fix_norm = {};

  virtual double initial_gain(int64_t /*d_model*/) const { return 1; }
  /// Describes the options of this kind alone, as one table. `switched_off_by`: that of each Field.
  virtual void describe_own(SettingsVisitor& /*visitor*/, std::string_view /*switched_off_by*/) {}
  /// The norm of rows of width `d_model` as a fused kernel takes it; nothing: the norm runs by its formula.
  virtual std::optional<RowNorm> row(const NormDenominator& denominator, int64_t d_model) const = 0;
  /// x [T, D] → [T, D]; gain [D] or [1], bias [D]: undefined where the kind has none. What has no gradient must pass
  /// stop_gradient().
  virtual at::Tensor formula(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias,
                             const NormDenominator& denominator) const = 0;

  /// Elements of the gain: 0, 1 or d_model.
  int64_t gain_size(int64_t d_model) const;
  /// The norm with its parameters, as add_norm() takes it.
  NormOp make(Value gain_value, Value bias_value, const NormDenominator& denominator, int64_t d_model) const;
  /// The kind's own ε, added inside the root of the biased variance.
  NormDenominator default_denominator() const { return {.eps = default_eps}; }
};

/// The base of every kind.
template <class Kind>
using NormKindOf = KindOf<NormKind, Kind>;

/// x without a gradient. Formulas call this and not Tensor::detach(), so that tests can hold the stopped values fixed
/// while they vary the input (StoppedValues).
at::Tensor stop_gradient(const at::Tensor& x);

/// The results of the calls of stop_gradient() during one evaluation of a formula. For tests; each thread has its own.
class StoppedValues {
 public:
  /// Records the calls that `formula` makes.
  explicit StoppedValues(const std::function<void()>& formula);
  /// Runs `formula`, whose calls of stop_gradient() return the recorded values in their order.
  void hold(const std::function<void()>& formula);

  bool empty() const { return values_.empty(); }

 private:
  friend at::Tensor stop_gradient(const at::Tensor& x);
  std::vector<at::Tensor> values_;
  size_t next_ = 0;
  bool recording_ = true;
};

/// All kinds with their options at their defaults, in the order of norms.def.
const Kinds<NormKind>& norm_kinds();

/// The norms of the model that have the chosen kind; the others stay layer_norm (docs/spec/knobs.md §3).
enum class NormScope { kAll, kFinalOnly, kEncoder, kDecoder };

/// Where a norm stands in the model.
struct NormSite {
  bool in_decoder = false;
  bool after_stack = false;     // the final norm of pre-norm stacks
  bool decoder_output = false;  // its output is the input of the output layer
};

/// The norm of one site: a kind and its denominator.
struct ChosenNorm {
  const NormKind& kind;
  NormDenominator denominator;
};

/// The settings [model.norm].
struct NormOptions {
  std::string kind = "layer_norm";
  NormScope scope = NormScope::kAll;
  std::optional<double> eps;  // ε of the norm; unset: the kind's default_eps
  EpsMode eps_mode = EpsMode::kSqrtAdd;
  Deviation deviation = Deviation::kBiased;

  /// The chosen kind, with the values of its own options.
  const NormKind& chosen() const { return kinds_.at(kind); }
  /// False if every norm is the identity.
  bool normalises() const { return kind != "none"; }
  /// False for layer_norm, which is also the kind outside a scope: `scope` is then ignored.
  bool scope_applies() const { return kind != "layer_norm"; }
  /// The norm of that site: of the chosen kind, or outside `scope` layer_norm as it is by default. Options that the
  /// kind does not have are ignored: they are no part of a run's id. `fix_norm`: the model has FixNorm
  /// (NormKind::before_fix_norm). The result is valid while these options are.
  ChosenNorm at(const NormSite& site, bool fix_norm) const;

 private:
  friend void describe(SettingsVisitor& visitor, NormOptions& options, bool has_stacks);
  bool in_scope(const NormSite& site) const;

  Kinds<NormKind> kinds_ = norm_kinds();  // one of each kind: a grid may set options of several kinds
};
/// Without stacks of layers there is no setting `scope`: every norm has the chosen kind.
void describe(SettingsVisitor& visitor, NormOptions& options, bool has_stacks = true);

}  // namespace tearless::engine
