// The residual stream of one stack of layers. Only residual.cc distinguishes norm placements (docs/spec/knobs.md §1):
//   post          x ← N(x + drop(F(x)))
//   pre           x ← x + drop(F(N(x))), and one more N after the stack
//   pre_no_final  as pre, without that last N
//
// A stack constructs Residual with its input x. Each sublayer F reads input() and passes its output to add(). The
// output of the stack is output().
#pragma once

#include <string>
#include <vector>

#include "engine/model/forward_context.h"
#include "engine/model/options.h"
#include "engine/model/parameters.h"

namespace tearless::engine {

/// The norm and the output dropout of one sublayer.
struct SublayerConnection {
  NormOp norm;
  DropoutSite dropout;
};

/// Appends the norm parameters `name`.norm.gain and `name`.norm.bias, if the kind of the norm there has them.
void append_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name,
                       const NormSite& site);
/// Appends those of a stack's final norm, `stack`.final, if the placement has one. `stack`: "encoder" or "decoder".
void append_final_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& stack);

/// The connection of sublayer `name`.
SublayerConnection make_sublayer_connection(const Parameters& parameters, const ModelOptions& options,
                                            uint32_t dropout_seed, const std::string& name, const NormSite& site);
/// The final norm of `stack`; the identity where the placement has none.
NormOp make_final_norm(const Parameters& parameters, const ModelOptions& options, const std::string& stack);

/// The site of a sublayer's norm. `last`: of the stack's last sublayer.
NormSite sublayer_site(const ModelOptions& options, bool in_decoder, bool last);

/// Adding a sublayer's output is deferred until the next norm is known; residual add, dropout and norm then run as one
/// fused kernel.
class Residual {
 public:
  /// x [T, D] is the input of the stack. Borrows `context` and `rows`; `rows` must outlive the tape.
  Residual(Placement placement, const ForwardContext& context, Value x, const PackedRows& rows);

  /// The input of the sublayer with this connection, [T, D].
  Value input(const SublayerConnection& connection);
  /// Adds the sublayer's output y [T, D], with dropout.
  void add(const SublayerConnection& connection, const Value& y);
  /// The output of the stack, [T, D].
  Value output(const NormOp& final_norm);

 private:
  /// Adds the pending output to x_ and returns the norm of the sum.
  Value add_pending(const NormOp& norm);

  Placement placement_;
  const ForwardContext& context_;
  Value x_;
  const PackedRows& rows_;
  Value pending_;  // output of the last sublayer, not yet added; or empty
  Dropout pending_dropout_;
};

}  // namespace tearless::engine
