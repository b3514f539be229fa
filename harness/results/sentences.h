// The statistics of the sentences of runs, from their outputs/*.stats, for tests over sentences.
#pragma once

#include <string>
#include <vector>

#include "harness/results/result_set.h"

namespace tearless::harness {

/// Fills in Row::sentences, for the scores that match one of the names or patterns. A score of which the run has no
/// such file, or that sums over sentences do not make, is left out; in a copy that lacks the file it has none: null.
/// UserError, with the command to type, for a file from which another score follows than the run has.
void read_sentences(ResultSet& results, const std::vector<std::string>& scores);

}  // namespace tearless::harness
