// Translates a whole set: beam search (beam 1: greedy) over batches of sentences of like length.
#pragma once

#include <functional>
#include <vector>

#include "engine/data/parallel_tokens.h"
#include "engine/decode/options.h"
#include "engine/model/transformer.h"

namespace tearless::engine {

/// Token numbers of the joint vocabulary, without BOS and EOS, for every line of the set in its order.
/// `between_batches` is called now and then and may throw to give up.
std::vector<std::vector<int32_t>> translate(const Transformer& model, const ParallelTokens& set,
                                            const DecodeOptions& options, Tape::Ops ops,
                                            const std::function<void()>& between_batches);

}  // namespace tearless::engine
