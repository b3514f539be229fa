// Translates a set of sentences by beam search (beam 1: greedy), in batches of similar source length. On a device with
// CUDA graph capture the search runs on the device (device_search.h); otherwise the host chooses the hypotheses of each
// position.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/data/parallel_tokens.h"
#include "engine/decode/options.h"
#include "engine/model/transformer.h"

namespace tearless::engine {

class DeviceSearch;

class Translator {
 public:
  /// Borrows `model` and `options`, which must outlive it. Captured graphs are retained from one set to the next.
  Translator(const Transformer& model, const DecodeOptions& options, Tape::Ops ops);
  ~Translator();

  /// The translation of every line of `set`, in order: tokens of the target side without BOS and EOS. Calls
  /// `between_batches` before each batch; it may throw to stop the search.
  std::vector<std::vector<int32_t>> translate(const ParallelTokens& set, const std::function<void()>& between_batches);

 private:
  /// Whether the search can run on the device: its graphs need kernels for all that the model does.
  bool captures(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& source,
                const Value& encoder_output) const;

  const Transformer& model_;
  const DecodeOptions& options_;
  Tape::Ops ops_;
  std::optional<bool> captures_;  // known since the first batch
  std::unique_ptr<DeviceSearch> on_device_;
};

}  // namespace tearless::engine
