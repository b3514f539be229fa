// Translates a set of sentences by beam search (beam 1: greedy), in batches of similar source length; with
// SearchStop::kBatch of sentences that follow one another. On a device with CUDA graph capture the search of kind twt
// runs on the device (device_search.h) if one output of a sentence is wanted; otherwise the host chooses the hypotheses
// of each position. On the processor each thread has a batch of its own, and all share the weights, which are laid out
// once (packed_weights.h). Outputs do not depend on threads, nor on the batches unless these end together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/data/parallel_tokens.h"
#include "engine/decode/beam.h"
#include "engine/decode/options.h"
#include "engine/model/transformer.h"

namespace tearless::engine {

class DeviceSearch;

class Translator {
 public:
  /// Borrows `model` and `options`, which must outlive it. Captured graphs are retained from one set to the next.
  Translator(const Transformer& model, const DecodeOptions& options, Tape::Ops ops);
  ~Translator();

  /// The options.n_best best outputs for every line of `set`, the best first: tokens of the target side without BOS
  /// and EOS. Calls `between_batches` before each batch, on any thread but one at a time; it may throw to stop the
  /// search.
  std::vector<std::vector<SearchOutput>> search(const ParallelTokens& set,
                                                const std::function<void()>& between_batches);
  /// The tokens of the best ones alone.
  std::vector<std::vector<int32_t>> translate(const ParallelTokens& set, const std::function<void()>& between_batches);

 private:
  /// Whether the search can run on the device, which has graphs: they need kernels for all that the model does.
  bool captures(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& source,
                const Value& encoder_output) const;

  const Transformer& model_;
  const DecodeOptions& options_;
  Tape::Ops ops_;
  std::optional<bool> captures_;  // known since the first batch
  std::unique_ptr<DeviceSearch> on_device_;
};

}  // namespace tearless::engine
