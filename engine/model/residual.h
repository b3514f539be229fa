// The residual stream of one stack, and the only place that asks where a norm stands (knobs.md §1):
//   post          x ← N(x + drop(F(x)))
//   pre           x ← x + drop(F(N(x))), and one more N after the stack
//   pre_no_final  as pre, without that last N
// A sublayer asks enter() what it reads and hands its output to leave(); the stack's output is finish().
#pragma once

#include <string>
#include <vector>

#include "engine/model/options.h"
#include "engine/model/parameters.h"
#include "engine/model/step.h"

namespace tearless::engine {

/// What one sublayer's seam owns: its norm and the dropout on its output.
struct Seam {
  NormOp norm;
  DropoutSite dropout;
};

/// The norm parameters `name`.norm.gain and .bias.
void append_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name);
/// As above for a stack's final norm `name`.final, where the placement has one.
void append_final_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name);

Seam make_seam(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed,
               const std::string& name);
/// The final norm of stack `name`; the identity where the placement has none.
NormOp make_final_norm(const Parameters& parameters, const ModelOptions& options, const std::string& name);

/// A sublayer's output is added when it is known which norm comes next, so that both are one pass over the rows.
class Residual {
 public:
  /// x [T, D] enters the stack; `rows` must outlive the tape.
  Residual(Placement placement, const Step& step, Value x, const PackedRows& rows);

  /// What the sublayer with this seam reads, [T, D].
  Value enter(const Seam& seam);
  /// Takes the sublayer's output y [T, D].
  void leave(const Seam& seam, const Value& y);
  /// The stack's output, [T, D].
  Value finish(const NormOp& final_norm);

 private:
  /// Adds what is pending, and gives the norm of the sum.
  Value add_pending(const NormOp& norm);

  Placement placement_;
  const Step& step_;
  Value x_;
  const PackedRows& rows_;
  Value pending_;  // the last sublayer's output, not yet added; or empty
  Dropout pending_dropout_;
};

}  // namespace tearless::engine
