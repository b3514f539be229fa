// The sublayers of a layer: each is one function on the residual stream, such as self-attention or the feed-forward
// block. Stacks and search know them by this interface alone.
//
// To add a kind:
//   1. a file beside this one with a class derived from Sublayer, whose constructor declares its parameters, and a
//      function `<name>_sublayer()` that makes its SublayerKind. A sublayer whose rows see each other keeps what it
//      needs of them in its slot (stack_state.h): then it has a cache in search, and a memory;
//   2. a line SUBLAYER(<name>) in sublayers.def.
// It is then a word of model.encoder_sublayers and model.decoder_sublayers, listed on the generated settings page, and
// covered by the tests that all kinds share. The norm and the residual sum around it are those of its connection
// (residual.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/kinds.h"
#include "engine/model/forward_context.h"
#include "engine/model/layer_scope.h"
#include "engine/model/source_projection.h"
#include "engine/model/stack_state.h"
#include "engine/ops/attention.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The encoder output as sublayers of the decoder see it.
struct EncoderOutput {
  Value projected;              // [S, W] of SourceProjection
  const AttentionSpans& spans;  // the source rows that each row sees
};

/// What relative attention reads of the distances from a row back to those that it sees.
struct Distances {
  Value vectors;       // [P, D] the vector of distance a is row a; those of P and beyond are the last
  int64_t window = 0;  // a row sees those at distances below this; 0: all
};

/// What a sublayer reads besides its input rows. All of it must outlive the tape.
struct SublayerInputs {
  const PackedRows& rows;
  const AttentionSpans& self;                     // which of the rows that slot.extend() returns each row sees
  const EncoderOutput* encoder_output = nullptr;  // in decoders
  const Distances* distances = nullptr;           // for relative attention
  Slot slot = {};                                 // set by the stack, if it has a state
};

class Sublayer {
 public:
  virtual ~Sublayer() = default;

  /// x [T, D] → [T, D]: the rows of whole sentences, or with a state those of a segment after its memory, or the newest
  /// position of each hypothesis of a search.
  virtual Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const = 0;
  /// Numbers that it keeps of each row in `inputs.slot`; 0 if it sees no other rows of its own side.
  virtual int64_t slot_width() const { return 0; }
  /// The same where parameters are constant from pass to pass, as in evaluation: it may then keep what it computes of
  /// its inputs instead of these. forward() sees by the slot's width which it is.
  virtual int64_t constant_slot_width() const { return slot_width(); }
  /// Whether these are sums, kept in fp32 where rows are bf16.
  virtual bool slot_is_wide() const { return false; }
};

/// A kind of sublayer as the settings name it.
struct SublayerKind {
  std::string_view name = {};     // set from sublayers.def; a part of the names of its parameters
  std::string_view meaning = {};  // formula and source, for the settings page
  bool reads_encoder_output = false;
  bool is_causal = false;  // each row sees itself and those before, also where all are there
  std::unique_ptr<Sublayer> (*make)(const LayerScope& scope, SourceProjection& source) = nullptr;
};

/// For SublayerKind::make.
template <class Kind>
std::unique_ptr<Sublayer> make_sublayer(const LayerScope& scope, SourceProjection& source) {
  return std::make_unique<Kind>(scope, source);
}

/// All kinds, in the order of sublayers.def.
const Kinds<SublayerKind>& sublayer_kinds();
/// The kinds that a setting such as "self_attention, ffn" names, in order. REQUIRES: check_sublayers() accepts it.
std::vector<const SublayerKind*> sublayers_of(std::string_view setting);
/// Throws UserError if the setting `key` names a kind that does not exist, or names a kind twice. Encoders must not
/// name a kind that reads the encoder output or is causal; decoders must name one that reads it.
void check_sublayers(std::string_view key, std::string_view setting, bool in_decoder);

}  // namespace tearless::engine
