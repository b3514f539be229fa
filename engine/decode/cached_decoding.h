// Decoding position by position with a cache, for a search on the host. Hypotheses of one sentence are adjacent. A row
// of the cache is written once and keeps its number: when hypotheses are reordered, only the lists of the rows that
// each of them sees change.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/transformer.h"

namespace tearless::engine {

class CachedDecoding {
 public:
  /// Before the first position, with one hypothesis for each sentence. `rows`: how many the cache has room for before
  /// it must grow. Borrows `model`, `context` and `tables`.
  CachedDecoding(const Transformer& model, const ForwardContext& context, const Embeddings::Tables& tables,
                 const Value& encoder_output, int64_t sentences, int64_t rows);

  /// The logits [N, K] of the next position. `tokens`: the newest of each hypothesis, first the decoder's start.
  /// `cross`: the source rows that each hypothesis sees, one span per sentence.
  Value advance(std::vector<int32_t> tokens, const AttentionSpans& cross);
  /// Replaces the hypotheses: new hypothesis i continues old hypothesis parents[i]. Their number may change.
  void reorder(const std::vector<int64_t>& parents);

 private:
  const Transformer& model_;
  const ForwardContext& context_;
  const Embeddings::Tables& tables_;
  DecodeCache cache_;
  int64_t used_ = 0;                             // rows of the cache
  std::vector<std::vector<int32_t>> ancestors_;  // per hypothesis: the rows of its positions 0 … position_ - 1
  int32_t position_ = 0;                         // of the next row
};

}  // namespace tearless::engine
