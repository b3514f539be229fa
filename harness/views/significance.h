// How a table compares its cells: the section [table.test].
//
//   [table]
//   baseline = "layer_norm"      # the row that the others are compared with, column by column
//   [table.test]
//   method = "t"                 # or "sign-flip", over seeds; "randomisation" or "bootstrap", over sentences
//   level  = [0.05, 0.01]        # † and ‡
//   within = "0.3 BLEU"          # ≈
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/statistics/random.h"
#include "harness/views/within.h"

namespace tearless {
class TableReader;
}

namespace tearless::harness {

struct SignificanceTest {
  enum class Method { kRandomisation, kBootstrap, kSacrebleu, kSignFlip, kT };
  Method method = Method::kT;
  Sampling sampling = {};               // of all but kT
  std::vector<double> levels = {0.05};  // one, or two of which the second is smaller
  bool is_corrected = true;             // by Holm's, over the comparisons of the table
  bool is_paired = true;                // kT: by seed; otherwise Welch's
  bool is_bold = true;                  // the best cell of a column is, and what cannot be told from it
  std::string bold_location = {};       // of the key that says so; "": none does
  // kT: score or pattern → the difference from its baseline within which a cell is marked ≈.
  std::map<std::string, Within> within = {};

  bool is_over_sentences() const { return method <= Method::kSacrebleu; }
  bool draws_samples() const { return method != Method::kT; }
};

/// All but `within`, which depends on the scores of the table. UserError with file and line for every mistake.
/// `has_seeds`: the grid has several. Without `method` the test is then over these, else, and with `samples` or `seed`,
/// over sentences.
SignificanceTest read_significance_test(TableReader& reader, bool has_seeds);

}  // namespace tearless::harness
