// SentencePiece for raw text: a BPE model, no normalisation, every character of the training text covered, all
// spaces preserved. join(encode(line)) returns the line, double and leading spaces included, except for characters that
// the training text lacks (they become UNK) and U+2581, SentencePiece's own mark of a space. TAB, NUL and U+2585, which
// SentencePiece reserves, become pieces outside its model if the training text has them.
#pragma once

#include "engine/data/subwords.h"

namespace tearless::engine {

inline constexpr std::string_view kSpaceMark = "\u2581";

/// Learns a model. `vocabulary_size` includes PAD, BOS, EOS and UNK. Throws UserError if the text has more characters
/// than that, yields fewer pieces, or has a word of more than 32,767 characters.
std::unique_ptr<Subwords> learn_sentencepiece(const TrainingText& train, int64_t vocabulary_size);
/// The model that Subwords::bytes() returned. Throws std::runtime_error for other bytes.
std::unique_ptr<Subwords> read_sentencepiece(std::string_view model);

}  // namespace tearless::engine
