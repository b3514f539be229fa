// chrF (Popović 2015) and chrF++ (Popović 2017) of summed statistics, as sacreBLEU 2 computes them
// (docs/spec/training.md §6.3): the F-score of precision and recall averaged over the orders of n-grams, the orders
// that neither side lacks ("eff:yes"). Not here: what the characters and words of a line are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tearless {

inline constexpr int64_t kChrfCharacterOrder = 6;

/// For each order of n-grams, of characters and then of words: n-grams of the hypothesis (0 if the reference has none),
/// those of the reference, and matches. Their names begin with "chrF" and beta, the weight of recall.
std::vector<std::string> chrf_columns(int64_t beta, int64_t word_order);
/// The beta of such columns; nullopt for others.
std::optional<int64_t> chrf_beta(const std::vector<std::string>& columns);

/// 0 … 100, unrounded. REQUIRES: `sum` has a number for each column.
double chrf(std::span<const int64_t> sum, int64_t beta);

}  // namespace tearless
