// Labelled sentences as token numbers, their word vocabulary, and their batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/data/labelled_text.h"
#include "engine/data/parallel_tokens.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// Sentence i has the tokens lines[i], at least one, without BOS and EOS, and the class labels[i].
struct LabelledLines {
  TokenLines lines;
  std::vector<int32_t> labels;  // from 0

  int64_t size() const { return lines.size(); }
};

/// Everything that training and evaluation read of labelled sentences.
struct LabelledTokens {
  /// [V] PAD, BOS, EOS, UNK, then the words of the training set by decreasing count; ties by byte order.
  std::vector<std::string> vocabulary;
  std::vector<std::string> classes;  // the names, by label
  LabelledLines train, dev, test;

  int64_t vocabulary_size() const { return static_cast<int64_t>(vocabulary.size()); }
  int64_t class_count() const { return static_cast<int64_t>(classes.size()); }
};

/// Encodes the three sets. Words that are not in the vocabulary are UNK; a dev or test sentence without a word
/// becomes a single UNK, so that every sentence counts and has a row. Throws UserError if `text` leaves no training
/// sentence of a class or no word.
LabelledTokens encode(const LabelledSets& sets, std::vector<std::string> classes, const WordOptions& text);

/// Reads and encodes the data. Verifies the checksums of `data`, or computes them if they are not known. The last few
/// results are cached in the process by checksums and settings, so that checking many configurations reads a corpus
/// once; `say` receives messages only when files are read. Throws UserError as read_labelled() and encode() do.
/// Thread-safe.
std::shared_ptr<const LabelledTokens> labelled_tokens(LabelledTextOptions data, const WordOptions& text,
                                                      const Say& say);

/// The batches of one pass over a training set: as cut_batches() (engine/data/batches.h), with
/// sentences × longest sentence ≤ `tokens`. A pure function of (seed, pass); every sentence is in exactly one batch.
std::vector<SentenceIds> cut_labelled_batches(const TokenLines& lines, int64_t tokens, uint32_t seed, int64_t pass);

/// The batches of an evaluation: the sentences in their order, cut by the same rule.
std::vector<SentenceIds> evaluation_batches(const TokenLines& lines, int64_t tokens);

struct LabelledBatch {
  PackedRows rows;
  std::vector<int32_t> labels;  // [N]
};

/// Packs these sentences into rows.
LabelledBatch pack(const LabelledLines& set, std::span<const int32_t> sentences);

}  // namespace tearless::engine
