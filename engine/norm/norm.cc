#include "engine/norm/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include <cassert>
#include <utility>

namespace tearless::engine {

#define NORM(kind) std::unique_ptr<NormKind> kind##_kind();
#include "engine/norm/norms.def"
#undef NORM

namespace {

constexpr auto kScopes = std::to_array<std::string_view>({"all", "final_only", "encoder", "decoder"});
constexpr auto kEpsModes = std::to_array<std::string_view>({"sqrt_add", "std_add", "clamp"});
constexpr auto kDeviations = std::to_array<std::string_view>({"biased", "unbiased"});

thread_local StoppedValues* stopped = nullptr;

}  // namespace

// --- kinds -----------------------------------------------------------------------------------------------------------

const Kinds<NormKind>& norm_kinds() {
#define NORM(kind) {#kind, kind##_kind},
  static const Kinds<NormKind> kinds{{
#include "engine/norm/norms.def"
  }};
#undef NORM
  return kinds;
}

int64_t NormKind::gain_size(int64_t d_model) const {
  return gain == Gain::kNone ? 0 : gain == Gain::kScalar ? 1 : d_model;
}

NormOp NormKind::make(Value gain_value, Value bias_value, const NormDenominator& denominator, int64_t d_model) const {
  NormOp op;
  op.formula = [kind = std::shared_ptr<NormKind>(clone()), denominator](const at::Tensor& x, const at::Tensor& g,
                                                                        const at::Tensor& b) {
    return kind->formula(x, g, b, denominator);
  };
  op.row = row(denominator, d_model);
  op.gain = std::move(gain_value);
  op.bias = std::move(bias_value);
  return op;
}

RowNorm::Denominator NormDenominator::of_row() const {
  switch (eps_mode) {
    case EpsMode::kSqrtAdd:
      return RowNorm::Denominator::kRootAddEps;
    case EpsMode::kStdAdd:
      return RowNorm::Denominator::kDeviationAddEps;
    case EpsMode::kClamp:
      return RowNorm::Denominator::kDeviationClamped;
  }
  std::abort();
}

at::Tensor NormDenominator::inverse_of(const at::Tensor& centred) const {
  const int64_t d = centred.size(-1);
  at::Tensor mean_square = centred.square().mean(-1, /*keepdim=*/true);  // [T, 1]
  if (unbiased()) mean_square = mean_square * (static_cast<double>(d) / static_cast<double>(d - 1));
  if (eps_mode == EpsMode::kSqrtAdd) return (mean_square + eps).rsqrt();
  // The root has no derivative at 0; that of the norm of a constant row is taken as if the deviation were fixed.
  const at::Tensor positive = mean_square > 0;
  const at::Tensor deviation = at::where(positive, mean_square, at::ones_like(mean_square)).sqrt() * positive;
  return (eps_mode == EpsMode::kStdAdd ? deviation + eps : deviation.clamp_min(eps)).reciprocal();
}

// --- stopped gradients -----------------------------------------------------------------------------------------------

at::Tensor stop_gradient(const at::Tensor& x) {
  if (!stopped) return x.detach();
  if (!stopped->recording_) return stopped->values_.at(stopped->next_++);
  stopped->values_.push_back(x.detach().clone());
  return stopped->values_.back();
}

StoppedValues::StoppedValues(const std::function<void()>& formula) {
  stopped = this;
  formula();
  stopped = nullptr;
  recording_ = false;
}

void StoppedValues::hold(const std::function<void()>& formula) {
  next_ = 0;
  stopped = this;
  formula();
  stopped = nullptr;
}

// --- settings --------------------------------------------------------------------------------------------------------

bool NormOptions::in_scope(const NormSite& site) const {
  if (!scope_applies()) return true;
  switch (scope) {
    case NormScope::kAll:
      return true;
    case NormScope::kFinalOnly:
      return site.after_stack;
    case NormScope::kEncoder:
      return !site.in_decoder;
    case NormScope::kDecoder:
      return site.in_decoder;
  }
  std::abort();
}

ChosenNorm NormOptions::at(const NormSite& site, bool fix_norm) const {
  if (!in_scope(site)) {
    const NormKind& plain = norm_kinds().at("layer_norm");
    return {plain, plain.default_denominator()};
  }
  const std::string_view before = chosen().before_fix_norm;
  const NormKind& kind_here = fix_norm && site.decoder_output && !before.empty() ? kinds_.at(before) : chosen();
  NormDenominator denominator{.eps = eps.value_or(kind_here.default_eps)};
  if (kind_here.has_eps_mode) denominator.eps_mode = eps_mode;
  if (kind_here.has_deviation) denominator.deviation = deviation;
  return {kind_here, denominator};
}

void describe(SettingsVisitor& visitor, NormOptions& options, bool has_stacks) {
  static const std::vector<std::string_view> names = norm_kinds().names();
  static const std::string meaning = "kind of every norm of the model: " + norm_kinds().meanings();
  visitor.word({.key = "kind", .meaning = meaning, .choices = names}, options.kind);
  const NormKind& chosen = options.chosen();
  const auto unless = [](bool has_it) { return has_it ? "" : "model.norm.kind"; };
  if (has_stacks) {
    visitor.choice({.key = "scope",
                    .meaning = "the norms that have this kind; the others stay layer_norm: `all`, `final_only` those "
                               "after a stack, or those of one stack",
                    .neutral = "all",
                    .switched_off_by = unless(options.scope_applies())},
                   options.scope, kScopes);
  }
  visitor.optional_number({.key = "eps",
                           .meaning = "ε of the norm; unset: the kind's own",
                           .min = 0,
                           .max = 1,
                           .switched_off_by = unless(chosen.has_eps)},
                          options.eps);
  visitor.choice({.key = "eps_mode",
                  .meaning = "how ε enters the denominator: `sqrt_add` √(s² + ε), `std_add` s + ε, `clamp` max(s, ε)",
                  .neutral = "sqrt_add",
                  .switched_off_by = unless(chosen.has_eps_mode)},
                 options.eps_mode, kEpsModes);
  visitor.choice({.key = "deviation",
                  .meaning = "divisor of the variance: `biased` d, `unbiased` d - 1",
                  .neutral = "biased",
                  .switched_off_by = unless(chosen.has_deviation)},
                 options.deviation, kDeviations);
  for (const auto& k : options.kinds_) {
    visitor.table_of(k->name, [&] { k->describe_own(visitor, unless(k->name == options.kind)); });
  }
}

}  // namespace tearless::engine
