// Transformer-XL (Dai et al. 2019; docs/spec/tasks.md §1.2): a language model that reads its text segment by segment,
// each with a memory of the inputs that every layer had in earlier segments.
//
// The rows of a layer's memory: a block of M + T for each of B streams, the memory and then the segment. Unfilled rows
// lie before the others, and no span names them.
//
//   stream 0 [ – – m m m m | x x x x ]   stream 1 [ – – m m m m | x x x x ]
//
// A pass over the next segment first shifts each block by T, then writes its rows: contiguous rows with the queries
// last are what attention reads fastest, and the copy costs little beside a matmul (docs/design.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/model/batch.h"
#include "engine/model/layer_stack.h"
#include "engine/model/relative_self_attention.h"
#include "engine/ops/cross_entropy.h"

namespace tearless::engine {

/// [model] of language_model. The defaults are those of the published run on enwik8.
struct TransformerXlOptions : LayerOptions {
  int64_t layers = 12;
  int64_t memory = 512;  // rows of earlier segments that each layer sees in training
  bool output_bias = true;

  TransformerXlOptions();
};
void describe(SettingsVisitor& visitor, TransformerXlOptions& options);
/// Throws UserError as for LayerOptions, and for a norm scope of one stack, because there is only one.
void check_consistent(const TransformerXlOptions& options);

/// How the segments of a text are read.
struct SegmentSizes {
  int64_t streams = 1;  // B
  int64_t segment = 1;  // T, but for the last of a pass
  int64_t memory = 0;   // M
  int64_t clamp = 0;    // distances above this count as this; 0: no such limit
  int64_t window = 0;   // rows that each row sees at most, its own among them; 0: no such limit
};

/// A segment of each stream as the forward pass takes it.
struct ReadySegment final : Batch {
  PackedRows tokens;            // [B · T] sentence b is the segment of stream b
  AttentionSpans spans;         // over the rows of the memory
  std::vector<int32_t> labels;  // [B · T] the next tokens

  int64_t rows() const override { return tokens.row_count(); }
  int64_t predictions() const override { return tokens.row_count(); }
  /// {rows}: the last segment of a pass has a bucket of its own.
  std::vector<int64_t> bucket() const override { return {tokens.row_count()}; }
  void pad() override;
  std::vector<Part> parts() const override;
};

/// What a memory has of the rows of each layer: their inputs, or the keys and values that these became, which stay
/// right only while parameters are constant, as in evaluation. They save the projections of the memory.
enum class MemoryOf { kInputs, kKeysAndValues };

/// What the layers keep of earlier segments, and the vectors of the distances that are seen.
class SegmentMemory {
 public:
  /// Of zeros. `options`: type and device of rows.
  SegmentMemory(const LayerStack& stack, int64_t d_model, const SegmentSizes& sizes, MemoryOf what,
                const at::TensorOptions& options);

  const SegmentSizes& sizes() const { return sizes_; }
  /// The rows of all layers, each [B · (M + T), D], of keys and values 2 D.
  std::vector<at::Tensor> tensors() const;
  /// The state for the next segment, of `rows` rows a stream: the rows of the last one become memory.
  const StackState& next(int64_t rows);
  /// [P, D]: (sin(a ω_0) … sin(a ω_{D/2-1}), cos(a ω_0) …) with ω_i = 10000^(-2i/D) of distance a.
  const at::Tensor& distances() const { return distances_; }
  /// The counters of the dropout of the distances: one mask for all streams and layers.
  const PackedRows& distance_rows() const { return distance_rows_; }

 private:
  SegmentSizes sizes_;
  StackState state_;
  at::Tensor distances_;
  PackedRows distance_rows_;
  std::map<int64_t, at::Tensor> written_;  // by the length of the segment; captured updates read them
};

class TransformerXl {
 public:
  /// Declares its parameters; call parameters.allocate() next. Borrows both.
  TransformerXl(Parameters& parameters, const TransformerXlOptions& options, int64_t vocab_size, uint32_t dropout_seed);

  SegmentMemory make_memory(const SegmentSizes& sizes, MemoryOf what = MemoryOf::kInputs) const;
  /// `number`: of the segment in its pass, from 0; the memory has then seen as many segments.
  ReadySegment ready(PackedRows rows, std::vector<int32_t> labels, int64_t number, const SegmentSizes& sizes) const;
  /// The logits of the next tokens [B · T, V]. Reads and writes `memory`. `batch` must outlive the tape.
  Value logits(const ForwardContext& context, const ReadySegment& batch, SegmentMemory& memory) const;
  /// The loss summed over the batch. On a recording tape, call tape.backward() next.
  CrossEntropySums loss(const ForwardContext& context, const ReadySegment& batch, SegmentMemory& memory,
                        double label_smoothing) const;

 private:
  TransformerXl(const LayerScope& root, const TransformerXlOptions& options, int64_t vocab_size);
  const TransformerXlOptions& options_;
  Parameters& parameters_;
  Value table_;  // [V, D], of input and output
  SharedQueries shared_;
  LayerStack stack_;
  Value output_bias_;  // [V] or empty
  DropoutSite input_dropout_, distance_dropout_, output_dropout_;
};

/// The number of parameters of the model. Allocates none.
int64_t parameter_count(const TransformerXlOptions& options, int64_t vocab_size);
/// The parameters with data of some size, on which neither their names nor which of them are a norm's length depend.
DeclaredParameters declared_parameters(const TransformerXlOptions& options);
/// About how many numbers of a segment of each stream training holds at a time.
int64_t saved_numbers(const TransformerXlOptions& options, const SegmentSizes& sizes);

}  // namespace tearless::engine
