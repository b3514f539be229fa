// Treebanks for the task parse: the settings of the data ([data]), and their trees as token numbers. Words, tags and
// arc labels have numbers of their own in one table of embeddings (docs/spec/tasks.md §4.2).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "engine/data/dependency_trees.h"
#include "engine/data/raw_files.h"

namespace tearless::engine {

/// What becomes of the labels of arcs.
enum class ArcLabels {
  kMain,  // "nsubj:pass" is "nsubj"
  kFull,  // as they are
  kNone   // all arcs have one label: UAS alone is learned
};

/// [data] of parse. Its paths are not part of a run's identity; its checksums are.
struct TreebankOptions {
  std::string name = "";                        // for messages; part of the identity only while checksums are missing
  std::string how_to_get = "";                  // sentence shown when a file is missing
  std::string train = "", dev = "", test = "";  // files in CoNLL-X or CoNLL-U
  TagColumn tags = TagColumn::kFine;
  ArcLabels labels = ArcLabels::kMain;
  bool lower_case = false;  // lower_cased() words
  int64_t min_count = 1;    // words that occur less often in the training set are UNKNOWN
  // SHA-256 of each file, filled in by DataFiles::fingerprint(); "" until then.
  std::string train_sha256 = "", dev_sha256 = "", test_sha256 = "";
};
void describe(SettingsVisitor& visitor, TreebankOptions& options);

/// The files of train, dev and test. Borrows `data`.
DataFiles data_files(TreebankOptions& data);

/// A sentence of n words as numbers.
struct EncodedTree {
  std::vector<std::string> forms;    // [n] the words as the file has them; of dev and test alone
  std::vector<int32_t> words, tags;  // [n + 1] tokens; at 0 those of ROOT
  std::vector<int32_t> heads;        // [n] gold; 0: ROOT
  std::vector<int32_t> labels;       // [n] gold, from 0; of dev and test -1 where training has no such label
  std::vector<uint8_t> is_word;      // [n] 0: is_punctuation() of its tag

  int32_t size() const { return static_cast<int32_t>(heads.size()); }
};

struct Treebank {
  /// [V] Words by decreasing count in the training set, ties by byte order, after NULL, ROOT and UNKNOWN; then tags and
  /// labels likewise.
  std::vector<std::string> tokens;
  int32_t no_word = 0, no_tag = 0, no_label = 0;  // the tokens NULL
  std::vector<std::string> labels;                // of arcs, by number
  int32_t first_label = 0;                        // the token of label 0
  int32_t root_label = 0;                         // of the arc from ROOT, and of no other if there are several

  std::vector<EncodedTree> train;      // projective trees alone
  int64_t left_out = 0;                // of train: those that are not projective
  std::vector<EncodedTree> dev, test;  // all

  int64_t vocabulary_size() const { return static_cast<int64_t>(tokens.size()); }
};

/// Reads and encodes the three sets; words, tags and labels are those of the projective training trees. Verifies the
/// checksums of `data`, or computes them if they are not known. The last few results are cached in the process by
/// checksums and settings; `say` receives messages only when files are read. Throws UserError as read_trees(), for a
/// set without tags or with others than those that tell its punctuation, for a training set without a projective tree,
/// if the arcs from its roots have several labels or one that other arcs have too (unless all arcs have the same), and
/// if min_count leaves no word; DataError for files that are missing or not those of the checksums. Thread-safe.
std::shared_ptr<const Treebank> read_treebank(TreebankOptions data, const Say& say);

/// Whether a tag is that of punctuation in the Penn Treebank: `` '' . , : (CoreNLP, ParsingSystem.getPunctuationTags),
/// or PUNCT in Universal Dependencies. The Penn Treebank's -LRB- and -RRB- count as words, and so do tags that were
/// added to it since, such as HYPH.
bool is_punctuation(std::string_view tag);

}  // namespace tearless::engine
