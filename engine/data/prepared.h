// A corpus prepared for training: vocabulary, tokens and references. It is prepared once and stored in a per-user
// cache. The cache key hashes the raw files and the settings of the preparation; all runs for which both are the same
// share an entry.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/parallel_tokens.h"
#include "engine/data/raw_files.h"
#include "engine/data/subwords.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The sizes of a corpus' vocabularies; equal where both sides share a vocabulary.
struct VocabularySizes {
  int64_t source = 0, target = 0;
  bool operator==(const VocabularySizes&) const = default;
};

/// The piece of each token number: of both sides, or of the target side where the source has its own numbers.
struct Vocabulary {
  /// [V] PAD, BOS, EOS, UNK, then pieces by decreasing frequency in the encoded training data; ties by byte order.
  std::vector<std::string> pieces;
  /// [V] 1 if the token occurs in the target side of the encoded training data, and for EOS and UNK; 0 for PAD and BOS
  /// (docs/spec/knobs.md §12). A dev or test label that is outside counts as UNK.
  std::vector<uint8_t> in_target;
  /// As `pieces`, the vocabulary of the source side; empty where `pieces` is that of both.
  std::vector<std::string> source_pieces = {};

  int64_t size() const { return static_cast<int64_t>(pieces.size()); }
  const std::vector<std::string>& pieces_of(Side side) const {
    return side == Side::kSource && !source_pieces.empty() ? source_pieces : pieces;
  }
  VocabularySizes sizes() const { return {static_cast<int64_t>(pieces_of(Side::kSource).size()), size()}; }
};

/// Everything that training and evaluation read of a corpus.
struct Prepared {
  Vocabulary vocabulary;
  ParallelTokens train;                                    // the pairs that training_pairs() returns
  ParallelTokens dev, test;                                // every line; an empty source line is EOS alone
  std::vector<std::string> dev_reference, test_reference;  // target lines; segmented text is joined
  std::unique_ptr<Subwords> subwords;                      // encodes and joins text
  std::unique_ptr<Subwords> source_subwords;               // that of the source side; null where `subwords` is of both

  const Subwords& subwords_of(Side side) const {
    return side == Side::kSource && source_subwords ? *source_subwords : *subwords;
  }
  /// The plain text of `ids`, tokens of that side. PAD, BOS and EOS are skipped; UNK is written <unk>.
  std::string to_text(std::span<const int32_t> ids, Side side = Side::kTarget) const;
  /// New source lines, encoded as dev and test are. The target sides are empty.
  ParallelTokens encode_source(std::span<const std::string> lines) const;
};

/// encode_source() of the lines of a file. Throws UserError as prepare() does for lines of dev and test.
ParallelTokens encode_file(const Prepared& corpus, TextKind kind, std::span<const std::string> lines,
                           const std::string& file);

/// The lines of a target side as hypotheses are scored against them: segmented text is joined, as hypotheses are.
std::vector<std::string> reference_lines(std::vector<std::string> lines, TextKind kind);

/// The cache key: a hash of the raw files' checksums, the text settings and the format number of the token file.
/// REQUIRES: `data` has its checksums (std::logic_error).
std::string preparation_key(const DataOptions& data, const TextOptions& text);

/// <cache>/prepared/<key>, where <cache> is $TEARLESS_CACHE, else $XDG_CACHE_HOME/tearless, else ~/.cache/tearless.
/// Throws UserError if no such variable is set, $HOME included.
std::filesystem::path prepared_folder(const std::string& key);

/// Whether the cache has an entry for `key`. Does not verify it.
bool is_prepared(const std::string& key);
/// The vocabularies' sizes in the first line of the token file; nothing if the corpus is not prepared.
std::optional<VocabularySizes> prepared_vocabulary_sizes(const std::string& key);

/// Loads the corpus from the cache, or prepares it and publishes it there. Concurrent calls for one key prepare it
/// once. A damaged entry is recreated, and `say` receives why. Throws UserError if a raw file differs from its checksum
/// in `data` (missing raw files are no error while the cache has the entry), for every fault of the text, such as
/// subword marks in it or an overlong line of dev or test, and if the cache cannot be written.
Prepared prepare(DataOptions data, const TextOptions& text, const Say& say);

}  // namespace tearless::engine
