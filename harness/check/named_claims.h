// Claims of a page, by words: "T4", "ScaleNorm is better than LayerNorm", "corpus=gl→en", "{verdict}".
#pragma once

#include <string>
#include <vector>

#include "harness/check/check.h"

namespace tearless::harness {

/// What is said of the one claim at one place that the words mean. A word is
/// - the text of a claim, its name, or both as they are printed;
/// - AXIS=LABEL of its place: as the grid has them, or in print;
/// - what is shown, a text with {verdict}, {numbers} (estimate and interval), {seeds} and {look}. Without one it is
///   what `check-table` has in the place's cell.
/// UserError, after "LOCATION: ", for words that mean no claim or several, with the nearest or those to add, and for
/// what the claim does not have.
std::string text_of_claim(const std::vector<GridChecks>& all, const std::vector<std::string>& words,
                          const std::string& location);

/// How many of the claims that the words mean have each verdict, each place counted: "12 held, 3 contradicted", or a
/// text with {held}, {contradicted}, {cannot tell}, {not tested}, {not claimed} and {all}. Of no words all are meant.
/// UserError as text_of_claim().
std::string counts_of_claims(const std::vector<GridChecks>& all, const std::vector<std::string>& words,
                             const std::string& location);

}  // namespace tearless::harness
