// SentencePiece for raw text: one joint BPE model, nothing normalised, every character of the training text covered,
// spaces kept, so that join(encode(line)) is the line, double and leading spaces included. Exceptions: characters that
// the training text lacks (they become UNK) and U+2581, which SentencePiece writes for a space. TAB, NUL and U+2585,
// which it reserves, become pieces beyond the model's where the training text has them.
#pragma once

#include "engine/data/subwords.h"

namespace tearless::engine {

/// `vocabulary_size` counts PAD, BOS, EOS and UNK. UserError where the text has more characters than that, or too few
/// pieces.
std::unique_ptr<Subwords> learn_sentencepiece(const ParallelText& train, int64_t vocabulary_size);
std::unique_ptr<Subwords> read_sentencepiece(std::string_view model);

}  // namespace tearless::engine
