#include "engine/decode/cached_decoding.h"

#include <utility>

namespace tearless::engine {
CachedDecoding::CachedDecoding(const Transformer& model, const ForwardContext& context,
                               const Embeddings::Tables& tables, const Value& encoder_output, int64_t sentences,
                               int64_t rows)
    : model_(model),
      context_(context),
      tables_(tables),
      cache_{model.decoder().project(context, encoder_output),
             model.decoder().make_state(rows, encoder_output.data().options())},
      ancestors_(static_cast<size_t>(sentences)) {}

Value CachedDecoding::advance(std::vector<int32_t> tokens, const AttentionSpans& cross) {
  const size_t hypotheses = tokens.size();
  PackedRows rows;
  rows.tokens = std::move(tokens);
  rows.positions.assign(hypotheses, position_++);
  rows.sentence_ids.assign(hypotheses, 0);
  AttentionSpans self;
  for (size_t h = 0; h < hypotheses; ++h) {
    std::vector<int32_t>& seen = ancestors_[h];
    seen.push_back(static_cast<int32_t>(used_) + static_cast<int32_t>(h));
    self.add(
        {static_cast<int32_t>(h), 1, static_cast<int32_t>(self.key_rows.size()), static_cast<int32_t>(seen.size()), 0});
    self.key_rows.insert(self.key_rows.end(), seen.begin(), seen.end());
  }
  const int64_t first = used_;
  used_ += static_cast<int64_t>(hypotheses);
  cache_.target.reserve(used_, /*filled=*/first);
  cache_.target.written = {.first = first};
  return model_.decode_step(context_, tables_, rows, self, cross, cache_);
}

void CachedDecoding::reorder(const std::vector<int64_t>& parents) {
  std::vector<std::vector<int32_t>> next;
  for (const int64_t parent : parents) next.push_back(ancestors_[static_cast<size_t>(parent)]);
  ancestors_ = std::move(next);
}

}  // namespace tearless::engine
