// Raw corpora: a pair of plain UTF-8 files, one sentence per line, for each of train, dev and test. Knows nothing about
// subwords.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/raw_files.h"

namespace tearless::engine {

/// The lines that subwords are learned from: those of a ParallelText, or of one side of it. Borrows them.
struct TrainingText {
  std::span<const std::string> source;
  std::span<const std::string> target;
};

/// The two sides of one set; line i of one translates line i of the other.
struct ParallelText {
  std::vector<std::string> source;
  std::vector<std::string> target;

  operator TrainingText() const { return {source, target}; }  // NOLINT(google-explicit-constructor)
};

/// The files of train, dev and test, each a source file and a target file. Borrows `data`.
DataFiles data_files(DataOptions& data);

/// Reads both sides of a set of data_files(). Every line is returned, empty ones too, so that hypotheses and references
/// stay aligned. Lines are those of text_lines(). Throws UserError for an empty file, sides of different length,
/// invalid UTF-8 (names file and line), and bytes that do not match the set's checksum.
ParallelText read_parallel(const DataSet& set);

/// The lines of one of these files, or of a reference. Throws as read_parallel() does.
std::vector<std::string> sentences_of(const std::string& bytes, const std::string& file);

/// The pairs to train on, in the order of the file: those of which no side is without a word or has more than
/// `max_words` words (0: no limit). With data.train_count = n > 0 these are shuffled, always in the same way, and the
/// first n of them taken, so that fewer pairs are a part of more. Throws UserError, naming data.train, if none is left,
/// or fewer than n.
ParallelText training_pairs(ParallelText text, int64_t max_words, const DataOptions& data);

}  // namespace tearless::engine
