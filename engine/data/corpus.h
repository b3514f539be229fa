// Raw corpora: three pairs of plain UTF-8 files, one sentence a line. Which are missing, which bytes they have, what
// they say. Not here: anything that knows of subwords.
#pragma once

#include <string>
#include <vector>

#include "engine/data/options.h"

namespace tearless::engine {

/// The two sides of one set, line by line.
struct ParallelText {
  std::vector<std::string> source;
  std::vector<std::string> target;
};

/// The first file that is not there, as one sentence that names it and says how to get it; "" where all are there.
/// UserError where a path or suffix is not set.
std::string missing_corpus(const DataOptions& data);

/// Fills in the checksums of the raw files, which must be there. A file's checksum is remembered for the life of the
/// process (by path, size and time of change): 100,000 configurations over one corpus read it once.
void fingerprint(DataOptions& data);

/// UserError where a raw file that is there has not the bytes that `data` records.
void verify_fingerprint(const DataOptions& data);

/// Both sides of `prefix`, whole: dev and test keep every line, empty ones too, so that hypotheses stay beside
/// references. Lines end at '\n' alone: CR, U+0085 and U+2028 are text. UserError for an empty file, sides of different
/// length, invalid UTF-8 (file and line), or bytes that are not those that `data` records.
ParallelText read_parallel(const DataOptions& data, const std::string& prefix);

/// What is trained on: pairs with no word on either side, or more than `max_words` (0: no limit) on one, are left out.
/// UserError where none is left.
ParallelText usable_pairs(ParallelText text, int64_t max_words, const std::string& prefix);

}  // namespace tearless::engine
