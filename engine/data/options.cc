#include "engine/data/options.h"

namespace tearless::engine {

void describe(SettingsVisitor& v, DataOptions& o) {
  // Until the checksums are known, the corpus name takes their place and the run's identity is provisional.
  const bool known = !o.train_sha256.empty() && !o.dev_sha256.empty() && !o.test_sha256.empty();
  const Identity name_identity = known ? Identity::kLocal : Identity::kResult;
  const auto local = [](const char* key, const char* meaning) {
    return Field{.key = key, .meaning = meaning, .identity = Identity::kLocal};
  };
  const auto checksum = [](const char* key, const char* meaning) {
    return Field{.key = key, .meaning = meaning, .neutral = ""};
  };
  v.word({.key = "name", .meaning = "name of the corpus, for messages", .identity = name_identity}, o.name);
  v.word(local("train", "training pairs: a path up to the suffix, relative to the file that names it"), o.train);
  v.word(local("dev", "development pairs, likewise"), o.dev);
  v.word(local("test", "test pairs, likewise"), o.test);
  v.word(local("source", "suffix of the source files, usually a language"), o.source);
  v.word(local("target", "suffix of the target files"), o.target);
  v.word(local("how_to_get", "sentence shown when a file is missing"), o.how_to_get);
  v.word(checksum("train_sha256", "checksum of the raw training files, filled in by check"), o.train_sha256);
  v.word(checksum("dev_sha256", "checksum of the raw development files, filled in by check"), o.dev_sha256);
  v.word(checksum("test_sha256", "checksum of the raw test files, filled in by check"), o.test_sha256);
}

void describe(SettingsVisitor& v, TextOptions& o) {
  v.choice({.key = "kind",
            .meaning =
                "bpe (joint merges, for tokenised text), sentencepiece (for raw text) or segmented (already subwords)"},
           o.kind, kTextKindNames);
  v.integer({.key = "merges",
             .meaning = "number of joint BPE merges (TwT App. A)",
             .min = 0,
             .max = 1e6,
             .applies = o.kind == TextKind::kBpe},
            o.merges);
  v.integer({.key = "pieces",
             .meaning = "size of the SentencePiece vocabulary, PAD, BOS, EOS and UNK included",
             .min = 5,
             .max = 1e6,
             .applies = o.kind == TextKind::kSentencepiece},
            o.pieces);
  v.integer({.key = "max_words",
             .meaning = "training pairs with more words than this on either side are left out; 0 keeps all",
             .min = 0,
             .max = 1e6,
             .neutral = 0},
            o.max_words);
}

void describe(SettingsVisitor& v, BatchOptions& o) {
  v.integer({.key = "tokens", .meaning = "most tokens in a batch, padding counted", .min = 1, .max = 1e9}, o.tokens);
  v.choice({.key = "count",
            .meaning = "what is counted: sentences × longest side, or sentences × (longest source + longest target)"},
           o.count, kBatchCountNames);
}

}  // namespace tearless::engine
