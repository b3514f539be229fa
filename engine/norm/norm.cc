#include "engine/norm/norm.h"

#include <cassert>
#include <utility>

namespace tearless::engine {

#define NORM(kind) NormKind kind##_kind();
#include "engine/norm/norms.def"
#undef NORM

namespace {

NormKind named(std::string_view name, NormKind kind) {
  kind.name = name;
  return kind;
}

}  // namespace

std::span<const NormKind> norm_kinds() {
  static const NormKind kinds[] = {
#define NORM(kind) named(#kind, kind##_kind()),
#include "engine/norm/norms.def"
#undef NORM
  };
  return kinds;
}

const NormKind& norm_kind(std::string_view name) {
  for (const NormKind& kind : norm_kinds()) {
    if (kind.name == name) return kind;
  }
  assert(false && "a norm kind that is not in norms.def");
  std::abort();
}

int64_t NormKind::gain_size(int64_t d_model) const {
  return gain == Gain::kNone ? 0 : gain == Gain::kScalar ? 1 : d_model;
}

NormOp NormKind::make(Value gain_value, Value bias_value, double eps) const {
  NormOp op;
  op.formula = [f = formula, eps](const at::Tensor& x, const at::Tensor& g, const at::Tensor& b) {
    return f(x, g, b, eps);
  };
  op.row = row;
  if (op.row) op.row->eps = eps;
  op.gain = std::move(gain_value);
  op.bias = std::move(bias_value);
  return op;
}

void describe(SettingsVisitor& visitor, NormOptions& options) {
  Field kind{.key = "kind", .meaning = "kind of every norm of the model:"};
  for (const NormKind& k : norm_kinds()) {
    kind.choices.emplace_back(k.name);
    kind.meaning += fmt::format("{} `{}` {}", kind.choices.size() > 1 ? ";" : "", k.name, k.meaning);
  }
  visitor.word(kind, options.kind);
  const bool applies = options.kind != "none";
  visitor.optional_number(
      {.key = "eps", .meaning = "ε of the norm; unset: the kind's own", .min = 0, .max = 1, .applies = applies},
      options.eps);
}

}  // namespace tearless::engine
