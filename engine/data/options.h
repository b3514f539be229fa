// The data settings: the corpus ([data]), its subwords ([text]) and the batches ([train.batch]).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace tearless::engine {

/// [data] The raw corpus. Its paths are not part of a run's identity; its checksums are.
struct DataOptions {
  std::string name = "";                        // for messages; part of the identity only while checksums are missing
  std::string train = "", dev = "", test = "";  // path prefixes: the files are <prefix>.<source> and <prefix>.<target>
  std::string source = "", target = "";         // file suffixes, usually languages
  std::string how_to_get = "";                  // sentence shown when a file is missing
  int64_t train_count = 0;                      // training pairs that are drawn; 0: all
  // SHA-256 of "<SHA-256 of the source file> <SHA-256 of the target file>", filled in by
  // DataFiles::fingerprint(); "" until then.
  std::string train_sha256 = "", dev_sha256 = "", test_sha256 = "";
};

enum class TextKind {
  kBpe,            // joint BPE, for tokenised text
  kSentencepiece,  // for raw text
  kSegmented       // text that is already split into subwords
};
inline constexpr std::array<std::string_view, 3> kTextKindNames = {"bpe", "sentencepiece", "segmented"};

/// Which pieces have a number of their own, and an embedding.
enum class VocabularyKind {
  kJoint,   // one vocabulary of both sides
  kPerSide  // each side numbers the pieces of its own training text
};

/// Which training text the subwords are learned from.
enum class LearnedFrom {
  kJoint,   // one model, of the text of both sides
  kPerSide  // a model for each side, of its own text (DS §7.1)
};

/// [text] How lines are split into subwords.
struct TextOptions {
  TextKind kind = TextKind::kBpe;
  int64_t merges = 3000;  // kBpe: number of merges (TwT App. A)
  int64_t pieces = 2000;  // kSentencepiece: vocabulary size, PAD, BOS, EOS and UNK included
  LearnedFrom learned = LearnedFrom::kJoint;
  VocabularyKind vocabulary = VocabularyKind::kJoint;
  /// kBpe: a piece that the side's training text does not have is split until its parts are there, or characters.
  bool split_unseen = true;
  int64_t min_count = 1;    // pieces that occur less often in the training text of their vocabulary are UNK
  int64_t max_words = 250;  // training pairs with more words on either side are dropped; 0: no limit

  bool learns_per_side() const { return learned == LearnedFrom::kPerSide && kind != TextKind::kSegmented; }
};

enum class BatchCount {
  kPaddedMaxSide,  // sentences × max(longest source, longest target)
  kPaddedSum,      // sentences × (longest source + longest target)
  kMaxTokens,      // as kPaddedMaxSide, with the order and the multiples of 8 of fairseq (batches.h)
  kPaddedBelow,    // as kPaddedMaxSide, but less than the limit (zero)
  kPaddedBosEos    // sentences × max(longest source without EOS, longest target with BOS and EOS) (JoeyNMT)
};
inline constexpr std::array<std::string_view, 5> kBatchCountNames = {"padded_max_side", "padded_sum", "max_tokens",
                                                                     "padded_below", "padded_bos_eos"};
/// When the training set is cut into batches.
enum class Regenerate {
  kPerPass,  // each pass: shuffle the sentences, sort and cut them, shuffle the batches
  kOnce,     // as in pass 0; each pass shuffles these batches
  kWindow,   // each pass: shuffle the sentences, sort and cut every 1,000 of them; the batches stay in this order
  kBuffers,  // in the order of the file, `buffer` sentences at a time (zero): batches.h
  kUnsorted  // each pass: shuffle the sentences and cut them (JoeyNMT)
};
inline constexpr std::array<std::string_view, 5> kRegenerateNames = {"per_pass", "once", "window", "buffers",
                                                                     "unsorted"};

/// [train.batch] The size of a batch (docs/spec/training.md §1.3).
struct BatchOptions {
  int64_t tokens = 4096;                          // maximum tokens per batch, padding included
  BatchCount count = BatchCount::kPaddedMaxSide;  // how they are counted
  Regenerate regenerate = Regenerate::kPerPass;   // when batches are made
  int64_t buffer = 60'000;                        // kBuffers: sentences
  double leak_ratio = 0.5;                        // kBuffers: a batch of fewer than leak_ratio · tokens is not kept
  int64_t truncate = 0;                           // training sides are cut to so many tokens, EOS counted; 0: none is
};

void describe(SettingsVisitor& visitor, DataOptions& options);
void describe(SettingsVisitor& visitor, TextOptions& options);
void describe(SettingsVisitor& visitor, BatchOptions& options);

}  // namespace tearless::engine
