// The decoder: layers of {masked self-attention, cross-attention, feed-forward} along one residual stream, over whole
// targets in training and one position at a time in search.
#pragma once

#include <string>
#include <vector>

#include "engine/model/attention_block.h"
#include "engine/model/feed_forward.h"
#include "engine/model/residual.h"

namespace tearless::engine {

void append_decoder_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options);

/// Keys and values that search keeps. They are written once and never moved: each hypothesis knows the rows of its own
/// past.
struct DecoderCache {
  Value memory;                  // of the encoder's output for every layer [S, layers · 2 D]
  std::vector<at::Tensor> past;  // per layer: of every position so far [capacity, 2 D], keys, then values
};

/// What search on the host keeps between positions. Hypotheses of one sentence stand together.
struct DecoderState {
  DecoderCache cache;
  int64_t rows = 0;                             // of the cache's capacity that are filled
  std::vector<std::vector<int32_t>> ancestors;  // per hypothesis: the rows of its positions 0 … position - 1
  int64_t position = 0;                         // the next position

  /// Hypothesis i goes on from what hypothesis parents[i] was; the number of hypotheses may change.
  void reorder(const std::vector<int64_t>& parents);
};

class Decoder {
 public:
  Decoder(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed);

  /// x [T, D] embedded target inputs, memory [S, D] → [T, D]. `self`, causal: which rows see which; `cross`: which
  /// rows of the memory they see. `rows` and spans must outlive the tape.
  Value forward(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                const Value& memory, const AttentionSpans& cross) const;

  /// The encoder's output as the cache holds it.
  Value project(const Step& step, const Value& memory) const { return memory_.forward(step, memory); }
  int64_t layer_count() const { return static_cast<int64_t>(layers_.size()); }

  /// One position for each hypothesis: x [N, D] → [N, D]. `self`: which rows of the cache each sees, its own one, which
  /// goes to `written`, among them; `cross`: which rows of the memory.
  Value advance(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                const AttentionSpans& cross, DecoderCache& cache, const CacheRows& written) const;

  /// The state before the first position, for `hypotheses` hypotheses.
  DecoderState start(const Step& step, const Value& memory, int64_t hypotheses) const;
  /// One position for each hypothesis: x [N, D] → [N, D]. `cross`: which source rows each hypothesis
  /// sees, one span a sentence.
  Value advance(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& cross,
                DecoderState& state) const;

 private:
  struct Layer {
    Seam self_seam;
    SelfAttention self_attention;
    Seam cross_seam;
    CrossAttention cross_attention;
    Seam ffn_seam;
    FeedForward ffn;
  };
  Placement placement_;
  int64_t d_model_;
  MemoryProjection memory_;
  std::vector<Layer> layers_;
  NormOp final_norm_;
};

}  // namespace tearless::engine
