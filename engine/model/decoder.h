// The decoder: layers of masked self-attention, cross-attention and feed-forward. forward() runs over whole targets
// (training, perplexity), decode_step() and advance() over one position of each hypothesis (beam search).
#pragma once

#include <vector>

#include "engine/model/cross_attention.h"
#include "engine/model/layer_stack.h"

namespace tearless::engine {

/// What beam search keeps between positions. A row is written once and never moved: when hypotheses are reordered, only
/// the lists of the rows that each hypothesis sees change.
struct DecodeCache {
  Value source;                  // [S, W] Decoder::project() of the encoder output
  std::vector<at::Tensor> rows;  // per sublayer [capacity, its cache_width()], or undefined

  /// Rows of each tensor of `rows`; 0 where no sublayer keeps any.
  int64_t capacity() const;
};

/// The decoder's state between two positions of a search on the host. Hypotheses of one sentence are adjacent.
struct DecoderState {
  DecodeCache cache;
  int64_t rows = 0;                             // cache rows in use
  std::vector<std::vector<int32_t>> ancestors;  // per hypothesis: the cache rows of its positions 0 … position - 1
  int64_t position = 0;                         // index of the next position

  /// Replaces the hypotheses: new hypothesis i continues old hypothesis parents[i]. Their number may change.
  void reorder(const std::vector<int64_t>& parents);
};

class Decoder {
 public:
  Decoder(const LayerScope& root, int64_t layers);

  /// x [T, D] embedded target inputs, encoder_output [S, D] → [T, D]. `self` (causal): the target rows that each row
  /// sees; `cross`: the source rows. `rows`, `self` and `cross` must outlive the tape.
  Value forward(const ForwardContext& context, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                const Value& encoder_output, const AttentionSpans& cross) const;

  /// DecodeCache::source.
  Value project(const ForwardContext& context, const Value& encoder_output) const {
    return source_.forward(context, encoder_output);
  }
  /// DecodeCache::rows for that many rows.
  std::vector<at::Tensor> make_caches(int64_t rows, const at::TensorOptions& options) const {
    return layers_.make_caches(rows, options);
  }

  /// One decode step: x [N, D], one row per hypothesis → [N, D]. `self`: the cache rows that each hypothesis sees,
  /// including the row in `written` that it writes in this step; `cross`: the source rows that it sees.
  Value decode_step(const ForwardContext& context, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                    const AttentionSpans& cross, DecodeCache& cache, const CacheRows& written) const;

  /// The state before the first position, for `hypotheses` hypotheses.
  DecoderState start(const ForwardContext& context, const Value& encoder_output, int64_t hypotheses) const;
  /// As above, with the cache and the self-attention spans taken from `state`, which moves to the next position.
  /// `cross`: the source rows that each hypothesis sees, one span per sentence.
  Value advance(const ForwardContext& context, const Value& x, const PackedRows& rows, const AttentionSpans& cross,
                DecoderState& state) const;

 private:
  SourceProjection source_;
  LayerStack layers_;
};

}  // namespace tearless::engine
