// Raw corpora: a pair of plain UTF-8 files, one sentence per line, for each of train, dev and test. Reports missing
// files, computes checksums and reads the text. Knows nothing about subwords.
#pragma once

#include <string>
#include <vector>

#include "engine/data/options.h"

namespace tearless::engine {

/// The two sides of one set; line i of one translates line i of the other.
struct ParallelText {
  std::vector<std::string> source;
  std::vector<std::string> target;
};

/// A sentence that names the first missing file and says how to get it; "" if no file is missing. Throws UserError if a
/// path or suffix is not set.
std::string missing_corpus(const DataOptions& data);

/// How the paths of a set's source file and target file end, after the set's prefix.
std::vector<std::string> corpus_endings(const DataOptions& data);

/// Fills in the checksums of the raw files, which must exist. Cached as files_sha256() is, so that checking 100,000
/// configurations reads a corpus once.
void fingerprint(DataOptions& data);

/// Throws UserError if a raw file exists and does not match its checksum in `data`. Missing files are skipped.
void verify_fingerprint(const DataOptions& data);

/// Reads both sides of the set `prefix`. Every line is returned, empty ones too, so that hypotheses and references stay
/// aligned. Only '\n' ends a line: CR, U+0085 and U+2028 are text. Throws UserError for an empty file, sides of
/// different length, invalid UTF-8 (names file and line), and bytes that do not match the checksum in `data`.
ParallelText read_parallel(const DataOptions& data, const std::string& prefix);

/// The pairs to train on: drops pairs where a side has no word or more than `max_words` words (0: no limit). Throws
/// UserError, naming `prefix`, if none is left.
ParallelText usable_pairs(ParallelText text, int64_t max_words, const std::string& prefix);

}  // namespace tearless::engine
