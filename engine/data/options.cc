#include "engine/data/options.h"

#include "engine/data/raw_files.h"

namespace tearless::engine {
namespace {

constexpr auto kJointOrPerSide = std::to_array<std::string_view>({"joint", "per_side"});

}  // namespace

void describe(SettingsVisitor& v, DataOptions& o) {
  const bool has_checksums = !o.train_sha256.empty() && !o.dev_sha256.empty() && !o.test_sha256.empty();
  v.word(name_field("name of the corpus, for messages", has_checksums), o.name);
  v.word(path_field("train", "training pairs: a path up to the suffix, relative to the file that names it"), o.train);
  v.word(path_field("dev", "development pairs, likewise"), o.dev);
  v.word(path_field("test", "test pairs, likewise"), o.test);
  v.word(path_field("source", "suffix of the source files, usually a language"), o.source);
  v.word(path_field("target", "suffix of the target files"), o.target);
  v.word(path_field("how_to_get", "sentence shown when a file is missing"), o.how_to_get);
  v.integer({.key = "train_count",
             .meaning = "training pairs, the first of one shuffle of all that can be trained on; 0: all",
             .min = 0,
             .max = 1e9,
             .neutral = 0},
            o.train_count);
  v.word(checksum_field("train_sha256", "checksum of the raw training files, filled in by check"), o.train_sha256);
  v.word(checksum_field("dev_sha256", "checksum of the raw development files, filled in by check"), o.dev_sha256);
  v.word(checksum_field("test_sha256", "checksum of the raw test files, filled in by check"), o.test_sha256);
}

void describe(SettingsVisitor& v, TextOptions& o) {
  v.choice({.key = "kind",
            .meaning = "bpe (for tokenised text), sentencepiece (for raw text) or segmented (already subwords)"},
           o.kind, kTextKindNames);
  v.integer({.key = "merges",
             .meaning = "number of BPE merges (TwT App. A)",
             .min = 0,
             .max = 1e6,
             .switched_off_by = o.kind == TextKind::kBpe ? "" : "text.kind"},
            o.merges);
  v.integer({.key = "pieces",
             .meaning = "size of the SentencePiece vocabulary, PAD, BOS, EOS and UNK included",
             .min = 5,
             .max = 1e6,
             .switched_off_by = o.kind == TextKind::kSentencepiece ? "" : "text.kind"},
            o.pieces);
  v.choice({.key = "learned",
            .meaning = "the training text that merges or pieces are learned from: that of both sides (`joint`), or "
                       "for each side its own, with as many merges or pieces each (`per_side`, DS §7.1)",
            .neutral = "joint",
            .switched_off_by = o.kind == TextKind::kSegmented ? "text.kind" : ""},
           o.learned, kJointOrPerSide);
  v.choice(
      {.key = "vocabulary",
       .meaning = "one vocabulary of both sides (`joint`), or one for each (`per_side`): that of the pieces of its "
                  "own training text, with embeddings of its own",
       .neutral = "joint"},
      o.vocabulary, kJointOrPerSide);
  v.flag(
      {.key = "split_unseen",
       .meaning = "of BPE, a piece of dev or test that the training text of its side does not have is split again "
                  "until its parts are there, or characters (fastBPE with a vocabulary, TwT); false: it stays, and is "
                  "UNK where the vocabulary does not have it (subword-nmt without a vocabulary)",
       .neutral = true,
       .switched_off_by = o.kind == TextKind::kBpe ? "" : "text.kind"},
      o.split_unseen);
  v.integer({.key = "min_count",
             .meaning = "pieces that occur less often than this in the training text of their vocabulary are UNK; 1 "
                        "keeps all",
             .min = 1,
             .max = 1e9,
             .neutral = 1},
            o.min_count);
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
            .meaning = "what is counted: `padded_max_side` sentences × longest side; `padded_sum` sentences × (longest "
                       "source + longest target); `max_tokens` as padded_max_side, but sorted by both lengths, full "
                       "batches cut to a multiple of 8 sentences, and no pair longer than the limit (fairseq, which "
                       "has regenerate = once); `padded_below` as padded_max_side, but less than the limit (zero, the "
                       "code of DS: regenerate = buffers); `padded_bos_eos` sentences × max(longest source without "
                       "EOS, longest target with BOS and EOS) (JoeyNMT: regenerate = unsorted)"},
           o.count, kBatchCountNames);
  v.choice({.key = "regenerate",
            .meaning = "when batches are made: `per_pass`, of a new order of the sentences in each pass; `once`, and "
                       "each pass shuffles them (the released code of TwT, fairseq); `window` in each pass, of every "
                       "1,000 sentences of a new order by themselves, shortest first and not shuffled (the ancestor "
                       "of TwT's code); `buffers` of train.batch.buffer sentences in the order of the file, sorted by "
                       "the longer side, and each pass shuffles the batches of a buffer (zero); `unsorted` in each "
                       "pass, of a new order of the sentences that is not sorted (JoeyNMT)",
            .neutral = "per_pass"},
           o.regenerate, kRegenerateNames);
  const std::string_view without_buffers = o.regenerate == Regenerate::kBuffers ? "" : "train.batch.regenerate";
  v.integer({.key = "buffer",
             .meaning = "sentences of a buffer, those that came back from the one before included (zero)",
             .min = 1,
             .max = 1e9,
             .switched_off_by = without_buffers},
            o.buffer);
  v.number({.key = "leak_ratio",
            .meaning = "the sentences of a batch with fewer tokens than leak_ratio × tokens, on the side that has more "
                       "and without padding, go back to the next buffer; at the end of a pass they are left out (zero)",
            .min = 0,
            .max = 0.5,
            .neutral = 0.0,
            .switched_off_by = without_buffers},
           o.leak_ratio);
  v.integer({.key = "truncate",
             .meaning = "training sides that are longer are cut to this many tokens, EOS counted, so that they end "
                        "without EOS (zero's max_len); 0 cuts none; see text.max_words, which leaves pairs out",
             .min = 0,
             .max = 1e6,
             .neutral = 0},
            o.truncate);
}

}  // namespace tearless::engine
