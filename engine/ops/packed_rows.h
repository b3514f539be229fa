// A batch without padding: the tokens of all sentences, one after another, as the T rows of one matrix. Attention, the
// means of sentences (span_means.h) and decoding need the sentence boundaries; the other operations on [T, D] work row
// by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tearless::engine {

/// The special tokens' ids (TwT's code; docs/spec/knobs.md §6).
inline constexpr int32_t kPad = 0, kBos = 1, kEos = 2, kUnk = 3;
/// The first token number after them.
inline constexpr int32_t kFirstPiece = 4;
/// In place of a token: an input whose word vector is zero.
inline constexpr int32_t kNoToken = -1;

/// One side (source or target) of a batch. T = tokens.size(). Sentence i has rows offsets[i] … offsets[i + 1] - 1, at
/// least one. Rows after the last sentence, if any, fill up a captured graph's batch size
/// (engine/model/padded_batch.h): they are computed, with finite values, and count for nothing.
struct PackedRows {
  std::vector<int32_t> tokens;        // [T] token numbers, or kNoToken
  std::vector<int32_t> positions;     // [T] 0, 1, … within the sentence
  std::vector<int32_t> sentence_ids;  // [T] the sentence's line in the corpus; with the position, the dropout counter
  std::vector<int32_t> offsets;       // [N + 1]
  /// [T] the rows ordered by token, then by row, for the embedding's backward. Empty: it sorts them itself.
  std::vector<int32_t> by_token;

  int64_t row_count() const { return static_cast<int64_t>(tokens.size()); }
  int64_t sentence_count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  /// Rows of sentences, without those that fill up.
  int64_t sentence_rows() const { return offsets.back(); }
};

/// Rows that are no tokens, `count` for each of these ids: what dropout asks of the pixels of images, or of the mean of
/// a sentence.
inline PackedRows rows_without_tokens(std::span<const int32_t> ids, int32_t count) {
  PackedRows rows;
  rows.offsets = {0};
  for (const int32_t id : ids) {
    for (int32_t position = 0; position < count; ++position) {
      rows.tokens.push_back(kPad);
      rows.positions.push_back(position);
      rows.sentence_ids.push_back(id);
    }
    rows.offsets.push_back(static_cast<int32_t>(rows.tokens.size()));
  }
  return rows;
}

/// A training batch. Source sentences end with EOS. Target inputs are BOS y₁ … y_n, labels y₁ … y_n EOS (same offsets);
/// a model may put another start in place of BOS (Transformer::ready()).
struct PackedBatch {
  PackedRows source;
  PackedRows target;
  std::vector<int32_t> labels;  // [target T]
};

}  // namespace tearless::engine
