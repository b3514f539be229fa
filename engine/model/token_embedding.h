// The input side of word embeddings: the rows of a batch's tokens, scaled, with positions and dropout. FixNorm is
// applied here.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "engine/model/layer_scope.h"
#include "engine/ops/embedding.h"
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
  /// `name`: of its dropout. `stack`: the one that reads it, whose input norms are here. `vector`: [D], or
  /// empty.
  TokenEmbedding(const LayerScope& scope, const char* name, Stack stack, Value vector = {},
                 AddedTo added_to = AddedTo::kAllRows);

  /// drop(N(scale · table[token] + position + vector)) → [T, D], with table [V, D] from embedding_rows(), and N the
  /// input norms of the placement, of which most have none. Word dropout has already been applied to `rows`, which must
  /// outlive the tape.
  Value forward(const ForwardContext& context, const Value& table, const PackedRows& rows) const;

 private:
  /// The position vectors of at least that many positions, on that device.
  at::Tensor positions(int64_t count, const at::Device& device) const;

  int64_t d_model_;
  double scale_;
  PositionOptions position_options_;
  at::ScalarType row_type_;
  DropoutSite dropout_;
  Value vector_;
  AddedTo added_to_;
  std::vector<NormOp> input_norms_;
  /// Sinusoids [P, D], P a power of two; the last table is long enough for every sentence so far. Shorter ones are
  /// retained because captured updates and decode steps still read them.
  struct PositionTables {
    std::mutex mutex;  // threads of a search share the model
    std::vector<at::Tensor> tables;
  };
  std::unique_ptr<PositionTables> positions_ = std::make_unique<PositionTables>();
};

}  // namespace tearless::engine
