// The rows of all sentences of a batch, one after another: no padding anywhere. Only attention and decoding ask where a
// sentence ends; every other operation is row-wise over [T, D].
#pragma once

#include <cstdint>
#include <vector>

namespace tearless::engine {

/// Token numbers with a meaning of their own (TwT; knobs.md §6).
inline constexpr int32_t kPad = 0, kBos = 1, kEos = 2, kUnk = 3;

/// One side of a batch. T = tokens.size() rows; sentence i owns rows offsets[i] … offsets[i + 1] - 1; none is empty.
/// Rows behind the last sentence are padding: their numbers are finite and count for nothing.
struct PackedRows {
  std::vector<int32_t> tokens;     // [T]
  std::vector<int32_t> positions;  // [T] 0, 1, … within the sentence
  std::vector<int32_t> lines;      // [T] the sentence's line in the corpus: names its random numbers
  std::vector<int32_t> offsets;    // [N + 1]
  /// [T] the rows ordered by token, then by row: what the embedding's backward walks. Empty: it makes them itself.
  std::vector<int32_t> by_token;

  int64_t row_count() const { return static_cast<int64_t>(tokens.size()); }
  int64_t sentence_count() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

/// A training batch. Source rows end with EOS; target inputs are BOS y₁ … y_n, labels y₁ … y_n EOS (same offsets).
struct PackedBatch {
  PackedRows source;
  PackedRows target;
  std::vector<int32_t> labels;  // [target T]
};

}  // namespace tearless::engine
