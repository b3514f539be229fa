// The interface of a sublayer: one function on the residual stream, such as self-attention or the feed-forward block.
// Stacks and search know sublayers by this interface alone.
//
// To add a kind of sublayer:
//   1. a pair of files beside this one with a class derived from Sublayer. Its constructor takes a LayerScope and
//      declares its parameters; it has forward() and, if it sees other positions, cache_width() and step();
//   2. a line where a layer is listed: engine/model/layer_stack.cc or decoder.cc.
// The norm and the residual sum around it are those of its connection (residual.h).
#pragma once

#include <cstdint>

#include "engine/model/forward_context.h"
#include "engine/model/layer_scope.h"
#include "engine/ops/attention.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The encoder output as sublayers of the decoder see it.
struct EncoderOutput {
  Value projected;              // [S, W] of SourceProjection (cross_attention.h)
  const AttentionSpans& spans;  // the source rows that each row sees
};

/// What a sublayer reads besides its input rows. All of it must outlive the tape.
struct SublayerInputs {
  const PackedRows& rows;
  const AttentionSpans& self;                     // the rows that each row sees; in a decode step, the cache rows
  const EncoderOutput* encoder_output = nullptr;  // in decoders
};

/// The rows of the decode cache that a decode step writes, one per hypothesis.
struct CacheRows {
  int64_t first = 0;        // N consecutive rows from this one, if `indices` is undefined
  at::Tensor indices = {};  // [N] int64 row numbers
};

class Sublayer {
 public:
  virtual ~Sublayer() = default;

  /// x [T, D] → [T, D].
  virtual Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const = 0;

  // Decoding position by position. The defaults suit a sublayer that sees no other position of its own rows.

  /// Numbers that the sublayer keeps of each position.
  virtual int64_t cache_width() const { return 0; }
  /// One decode step: x [N, D], the newest position of each hypothesis → [N, D]. Writes the rows `written` of `cache`
  /// [≥ N, cache_width()] before it reads those that `inputs.self` lists, which include them. A row is written once:
  /// when hypotheses are reordered, only the lists change. Not for recording tapes: there is no backward.
  virtual Value step(const ForwardContext& context, const Value& x, const SublayerInputs& inputs,
                     const CacheRows& /*written*/, at::Tensor& /*cache*/) const {
    return forward(context, x, inputs);
  }
};

}  // namespace tearless::engine
