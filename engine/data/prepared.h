// A corpus made ready for training: vocabulary, tokens, references. Learned once, kept in a per-user cache under a key
// that hashes the raw files and the settings of their preparation, and shared by all runs that want the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/parallel_tokens.h"
#include "engine/data/subwords.h"
#include "engine/data/vocabulary.h"

namespace tearless::engine {

struct Prepared {
  Vocabulary vocabulary;
  ParallelTokens train;      // without the pairs that usable_pairs() leaves out
  ParallelTokens dev, test;  // every line of the files; the source of an empty line is EOS alone
  std::vector<std::string> dev_reference, test_reference;  // lines of the target side, joined where they were segmented
  std::unique_ptr<Subwords> subwords;
  bool raw_text = false;  // text that was never tokenised: scored by bleu_13a

  /// The plain line that tokens spell: PAD, BOS and EOS say nothing, UNK prints <unk>.
  std::string to_text(std::span<const int32_t> ids) const;
  /// New source lines, as dev and test were encoded; the target sides are empty.
  ParallelTokens encode_source(std::span<const std::string> lines) const;
};

/// Hash of the raw files' checksums (which must be filled in), the text settings and the format of the token file.
std::string preparation_key(const DataOptions& data, const TextOptions& text);

/// <cache>/prepared/<key>; the cache is $TEARLESS_CACHE, else $XDG_CACHE_HOME/tearless, else ~/.cache/tearless.
std::filesystem::path prepared_folder(const std::string& key);

bool is_prepared(const std::string& key);
/// The vocabulary's size, from the first line of the token file; nothing before the corpus is prepared.
std::optional<int64_t> prepared_vocabulary_size(const std::string& key);

/// Receives a line now and then: what is being done, or that a damaged entry is made anew.
using Say = std::function<void(const std::string&)>;

/// Loads the corpus from the cache, or learns, encodes and publishes it there; two that want it at once make it once. A
/// damaged entry is made anew. UserError where raw files differ from their recorded checksums (those not there are not
/// missed while the cache has the corpus), for every fault of the text, and where the cache cannot be written.
Prepared prepare(DataOptions data, const TextOptions& text, const Say& say);

}  // namespace tearless::engine
