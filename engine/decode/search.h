// Translates a whole set: beam search (beam 1: greedy) over batches of sentences of like length. Where steps can be
// captured the search stays on the device (device_search.h); else the host chooses the hypotheses of each position.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/data/parallel_tokens.h"
#include "engine/decode/options.h"
#include "engine/model/transformer.h"

namespace tearless::engine {

class DeviceSearch;

class Translator {
 public:
  /// Borrowed things must outlive it. It keeps what it has captured from one set to the next.
  Translator(const Transformer& model, const DecodeOptions& options, Tape::Ops ops);
  ~Translator();

  /// Token numbers of the joint vocabulary, without BOS and EOS, for every line of the set in its order.
  /// `between_batches` is called now and then and may throw to give up.
  std::vector<std::vector<int32_t>> translate(const ParallelTokens& set, const std::function<void()>& between_batches);

 private:
  const Transformer& model_;
  const DecodeOptions& options_;
  Tape::Ops ops_;
  std::unique_ptr<DeviceSearch> on_device_;
};

}  // namespace tearless::engine
