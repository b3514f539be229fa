// The settings of the data room: which corpus, how its text becomes subwords, how sentences become batches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace tearless::engine {

/// [data] Where the corpus lies and which bytes it has. Paths never enter a run's identity, the bytes do.
struct DataOptions {
  std::string name = "";
  std::string train = "", dev = "", test = "";  // train + "." + source, train + "." + target …
  std::string source = "", target = "";
  std::string how_to_get = "";
  // Filled in by fingerprint() (engine/data/corpus.h): SHA-256 of "source-sha target-sha" of the raw files; "" while
  // one is missing.
  std::string train_sha256 = "", dev_sha256 = "", test_sha256 = "";
};

enum class TextKind { kBpe, kSentencepiece, kSegmented };
inline constexpr std::array<std::string_view, 3> kTextKindNames = {"bpe", "sentencepiece", "segmented"};

/// [text] How lines become subwords.
struct TextOptions {
  TextKind kind = TextKind::kBpe;
  int64_t merges = 3000;
  int64_t pieces = 2000;
  int64_t max_words = 250;
};

enum class BatchCount { kPaddedMaxSide, kPaddedSum };
inline constexpr std::array<std::string_view, 2> kBatchCountNames = {"padded_max_side", "padded_sum"};

/// [train.batch] What a batch may hold (TwT; spec training.md 1.3).
struct BatchOptions {
  int64_t tokens = 4096;
  BatchCount count = BatchCount::kPaddedMaxSide;
};

void describe(SettingsVisitor& visitor, DataOptions& options);
void describe(SettingsVisitor& visitor, TextOptions& options);
void describe(SettingsVisitor& visitor, BatchOptions& options);

}  // namespace tearless::engine
