// Sufficient statistics of sentences, and the files outputs/<set>.stats that hold them: a line of column names, then
// for each sentence a line of whole numbers, all separated by tabs. A score is a function of their sums (measures.h),
// so tests over sentences need neither decoding nor references.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

struct SentenceStats {
  std::vector<std::string> columns;
  std::vector<std::vector<int64_t>> rows = {};  // one for each sentence, with a number for each column

  /// The sum of each column.
  std::vector<int64_t> sum() const;
};

/// The text of a file of them.
std::string stats_text(const SentenceStats& stats);

/// Reads the text of `file`. UserError, naming file and line, for a text that is not of that form; among others for one
/// that is cut off, and for columns whose sum is above 2^53.
SentenceStats read_stats(std::string_view text, std::string_view file);

}  // namespace tearless
