// Beam search on the GPU. One decode step, for one position of all hypotheses, is
//   1. the decoder's forward pass over the newest tokens;
//   2. the kernel that selects the best tokens of each row (BestTokens in engine/ops/kernels.h);
//   3. the kernel that chooses the surviving hypotheses and writes the inputs of the next step (BeamStep).
// All its inputs are in device memory: tokens, the cache rows that each hypothesis sees, sums and scores. The launches
// are therefore the same at every position; a step is captured once per bucket of batch sizes as a CUDA graph and
// replayed. The host polls every few positions whether all sentences are done. The decode cache is shared by all
// batches; a batch writes each row at most once, and rows never move.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/decode/beam.h"
#include "engine/model/transformer.h"
#include "engine/ops/backend.h"

namespace tearless::engine {

class DeviceSearch {
 public:
  /// `model` and `options` must outlive the search. `capture`: of the model's device, which must have
  /// SearchKernels and Kernels::best_tokens.
  DeviceSearch(const Transformer& model, const DecodeOptions& options, CaptureGraph capture);
  ~DeviceSearch();

  /// The best output of each sentence, as columns of the logits. `encoder_output` [S, D] is that of `source`.
  std::vector<SearchOutput> search(const ForwardContext& context, const Embeddings::Tables& tables,
                                   const PackedRows& source, const Value& encoder_output);

 private:
  /// The sizes that a decode step is captured for; batches are padded to them.
  struct Bucket {
    int64_t sentences = 0;
    int64_t max_length = 0;         // output tokens
    int64_t max_source_length = 0;  // source tokens
    auto operator<=>(const Bucket&) const = default;
  };
  struct DecodeStep;

  /// Copies the tables to where captured decode steps read them.
  void set_tables(const Embeddings::Tables& tables);
  /// Copies the projected encoder output into the cache and ensures `rows` rows for the decoder.
  /// Growing the cache drops all captured steps.
  void fill_cache(const Value& projected, int64_t rows);
  /// The decode step for `bucket`, reset to the first position of `source`.
  DecodeStep& start(const Bucket& bucket, const PackedRows& source);
  /// Launches the kernels of one decode step.
  void launch(DecodeStep& step);

  const Transformer& model_;
  const DecodeOptions& options_;
  CaptureGraph capture_;
  Embeddings::Tables tables_;  // retained: captured decode steps read them
  DecodeCache cache_;
  std::map<Bucket, DecodeStep> steps_;
};

}  // namespace tearless::engine
