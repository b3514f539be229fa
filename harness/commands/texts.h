// What commands print of a workspace, as texts: for others that show the same, such as the pages of `tearless serve`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "harness/console/globals.h"

namespace tearless::harness {

/// What `tearless explain WORDS` prints. UserError for words that mean nothing.
std::string explanation_of(const std::vector<std::string>& words, const Globals& globals);

/// What `tearless diff LEFT RIGHT --where …` prints, as JSON if `globals` say so. UserError likewise.
std::string differences_of(const std::string& left, const std::string& right, const std::vector<std::string>& where,
                           const Globals& globals);

/// The last whole lines of what an attempt of a run has printed, at most so many bytes of it, with terminal escapes
/// made printable. `attempt`: its number; 0: the newest. UserError if there is no such attempt or log.
std::string end_of_log(const RunDirectory& run, int64_t attempt, size_t bytes);

}  // namespace tearless::harness
