// The residual stream of one stack of layers. Only residual.cc acts on the placement of norms (docs/spec/knobs.md §1):
//   post          x ← N(x + drop(F(x)))
//   pre           x ← x + drop(F(N(x))), and one more N after the stack
//   pre_no_final  as pre, without that last N
//   joey_pre      as pre_no_final, with N on the input of the stack
//   joey_post     x ← N(N(x + drop(F(x)))) for the last sublayer of a layer, x ← N(x + drop(F(x))) for the decoder's
//                 first, x ← x + drop(F(x)) for others, and one more N after the stack (docs/spec/knobs.md §4.4)
// In general a sublayer F has any number of norms before and after it:
//   x ← after(x + drop(F(before(x))))
//
// A stack constructs Residual with its input x. Each sublayer F reads input() and passes its output to add(). The
// output of the stack is output().
#pragma once

#include <string>
#include <vector>

#include "engine/model/layer_scope.h"

namespace tearless::engine {

/// What stands between a sublayer and the residual stream.
struct ResidualConnection {
  std::string name;            // of the sublayer: "encoder.1.ffn"
  std::vector<NormOp> before;  // on the sublayer's input, in the order of application
  DropoutSite dropout;         // on its output
  std::vector<NormOp> after;   // on the sum
};

/// Which of the sublayers of its stack a sublayer is.
struct SublayerPosition {
  bool first_of_layer = false, last_of_layer = false, last_of_stack = false;
};
/// The connection of the sublayer in that scope, by the placement of the model. Declares the norms' parameters,
/// <scope>.norm.gain and .bias, of a second norm <scope>.second.norm.gain and .bias, if their kind has them.
ResidualConnection make_connection(const LayerScope& sublayer, const SublayerPosition& position);
/// The norms on the sum of embedding and position, before its dropout, with the parameters <stack>.input.norm.gain and
/// .bias.
std::vector<NormOp> make_input_norms(const LayerScope& stack);
/// The norms after a stack, with the parameters <stack>.final.norm.gain and .bias.
std::vector<NormOp> make_final_norms(const LayerScope& stack);

/// Adding a sublayer's output is deferred until the next norm is known; residual add, dropout and norm then run as one
/// fused kernel.
class Residual {
 public:
  /// x [T, D] is the input of the stack. Borrows `context` and `rows`; `rows` must outlive the tape.
  Residual(const ForwardContext& context, Value x, const PackedRows& rows);

  /// The input of the sublayer with this connection, [T, D]. Connections must outlive this.
  Value input(const ResidualConnection& connection);
  /// Adds the sublayer's output y [T, D], with dropout.
  void add(const ResidualConnection& connection, const Value& y);
  /// The output of the stack, [T, D].
  Value output(const std::vector<NormOp>& final_norms);

 private:
  /// The norms of the stream, one after another. Before that adds the pending output, if any, to the stream.
  Value normed(const std::vector<NormOp>& norms);
  /// Whether the gradients at the points of the stream are asked for.
  bool gradients_are_seen() const { return context_.observer && context_.observer->sees_gradients(); }
  void show(const ResidualConnection& connection, StreamPoint point) const {
    context_.observer->see(context_.tape, connection.name, point, x_);
  }

  const ForwardContext& context_;
  Value x_;
  const PackedRows& rows_;
  Value pending_;  // output of the last sublayer, not yet added; or empty
  Dropout pending_dropout_;
  const ResidualConnection* pending_of_ = nullptr;
};

}  // namespace tearless::engine
