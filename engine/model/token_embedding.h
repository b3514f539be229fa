// The input side of word embeddings: the rows of a batch's tokens, scaled, with positions and dropout. FixNorm is
// applied here.
#pragma once

#include <vector>

#include "engine/model/layer_scope.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// How the row of PAD starts.
enum class PadRow {
  kOfInit,  // as the initialisation has it
  kZero,
  kRandom
};
/// Declares an embedding matrix [V, D].
Value declare_embedding(const LayerScope& scope, const char* name, int64_t vocab_size, PadRow pad = PadRow::kOfInit);

/// The rows of an embedding matrix as the model uses them: with FixNorm of unit length. Gradients flow through it.
Value embedding_rows(const ForwardContext& context, const LayerOptions& options, const Value& matrix);

class TokenEmbedding {
 public:
  /// `name`: of its dropout. `language`: a vector [D] that is added to every row, or empty.
  TokenEmbedding(const LayerScope& scope, const char* name, Value language = {});

  /// drop(scale · table[token] + position + language) → [T, D], with table [V, D] from embedding_rows(). Word dropout
  /// has already been applied to `rows`, which must outlive the tape.
  Value forward(const ForwardContext& context, const Value& table, const PackedRows& rows) const;

 private:
  int64_t d_model_;
  double scale_;
  PositionOptions position_options_;
  at::ScalarType row_type_;
  DropoutSite dropout_;
  Value language_;
  /// Sinusoids [P, D], P a power of two; the last table is long enough for every sentence so far. Shorter ones are
  /// retained because captured updates and decode steps still read them.
  mutable std::vector<at::Tensor> positions_;
};

}  // namespace tearless::engine
