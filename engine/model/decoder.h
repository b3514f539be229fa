// The decoder: layers of masked self-attention, cross-attention and feed-forward. forward() runs over whole targets
// (training, perplexity), decode_step() and advance() over one position of each hypothesis (beam search).
#pragma once

#include <string>
#include <vector>

#include "engine/model/attention_block.h"
#include "engine/model/feed_forward.h"
#include "engine/model/residual.h"

namespace tearless::engine {

void append_decoder_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options);

/// The keys and values of beam search. A row is written once and never moved: when hypotheses are reordered, only the
/// lists of the rows that each hypothesis sees change.
struct KvCache {
  Value cross_kv;                   // [S, layers · 2 D] of the encoder output, as CrossKvProjection lays it out
  std::vector<at::Tensor> self_kv;  // per layer [capacity, 2 D]: keys, then values, of all positions so far
};

/// The decoder's state between two positions of a search on the host. Hypotheses of one sentence are adjacent.
struct DecoderState {
  KvCache cache;
  int64_t rows = 0;                             // rows of self_kv in use
  std::vector<std::vector<int32_t>> ancestors;  // per hypothesis: the cache rows of its positions 0 … position - 1
  int64_t position = 0;                         // index of the next position

  /// Replaces the hypotheses: new hypothesis i continues old hypothesis parents[i]. Their number may change.
  void reorder(const std::vector<int64_t>& parents);
};

class Decoder {
 public:
  Decoder(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed);

  /// x [T, D] embedded target inputs, encoder_output [S, D] → [T, D]. `self` (causal): the target rows that each row
  /// sees; `cross`: the source rows. `rows`, `self` and `cross` must outlive the tape.
  Value forward(const ForwardContext& context, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                const Value& encoder_output, const AttentionSpans& cross) const;

  /// The keys and values of all layers for KvCache::cross_kv.
  Value project(const ForwardContext& context, const Value& encoder_output) const {
    return cross_kv_projection_.forward(context, encoder_output);
  }
  int64_t layer_count() const { return static_cast<int64_t>(layers_.size()); }

  /// One decode step: x [N, D], one row per hypothesis → [N, D]. `self`: the cache rows that each hypothesis sees,
  /// including the row in `written` that it writes in this step; `cross`: the source rows that it sees.
  Value decode_step(const ForwardContext& context, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                    const AttentionSpans& cross, KvCache& cache, const CacheRows& written) const;

  /// The state before the first position, for `hypotheses` hypotheses.
  DecoderState start(const ForwardContext& context, const Value& encoder_output, int64_t hypotheses) const;
  /// As above, with the cache and the self-attention spans taken from `state`, which moves to the next position.
  /// `cross`: the source rows that each hypothesis sees, one span per sentence.
  Value advance(const ForwardContext& context, const Value& x, const PackedRows& rows, const AttentionSpans& cross,
                DecoderState& state) const;

 private:
  struct Layer {
    SublayerConnection self_connection;
    SelfAttention self_attention;
    SublayerConnection cross_connection;
    CrossAttention cross_attention;
    SublayerConnection ffn_connection;
    FeedForward ffn;
  };
  Placement placement_;
  int64_t d_model_;
  CrossKvProjection cross_kv_projection_;
  std::vector<Layer> layers_;
  NormOp final_norm_;
};

}  // namespace tearless::engine
