// Which runs of a list are wanted, and in which order: --where and --sort of `tearless runs`.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/run_list.h"

namespace tearless::harness {

/// Keeps the runs for which all conditions hold: "test.bleu_13a > 20", "state = done". UserError for a malformed
/// condition.
void filter(RunList& list, const std::vector<std::string>& where);

/// By a column: numbers, then texts, then runs without a value, whatever the direction. "-NAME": descending.
void sort(RunList& list, const std::string& by);

}  // namespace tearless::harness
