// BLEU (Papineni et al. 2002) as multi-bleu.perl and sacreBLEU compute it, from statistics that are summed over
// sentences. Not here: what makes words of raw text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

/// Sufficient statistics of a sentence or, summed, of a corpus. Index n - 1 is for n-grams.
struct BleuStats {
  std::array<int64_t, 4> matches{};  // n-grams of the hypothesis that the reference has, clipped
  std::array<int64_t, 4> totals{};   // n-grams of the hypothesis
  int64_t hypothesis_length = 0;     // words
  int64_t reference_length = 0;      // words

  /// The fields in the order above: ten numbers.
  std::vector<int64_t> numbers() const;
  static BleuStats of_numbers(std::span<const int64_t> numbers);
  /// Their names.
  static const std::vector<std::string>& columns();

  BleuStats& operator+=(const BleuStats& other);
  bool operator==(const BleuStats&) const = default;
};

/// The statistics of one sentence with one reference. Words are split as multi-bleu.perl does, which reads bytes: white
/// space is ASCII only (space, \t, \n, \v, \f, \r). A CR therefore ends a word, while U+00A0, U+0085 and U+2028 are
/// parts of words.
BleuStats bleu_stats(std::string_view hypothesis, std::string_view reference);

/// exp(1 - r/c) for c words of hypotheses that are fewer than r of references, else 1.
double brevity_penalty(const BleuStats& stats);

/// BLEU of multi-bleu.perl: 0 … 100, unrounded; 0 if a precision is 0 (docs/spec/training.md §6.1).
double bleu(const BleuStats& stats);

/// `scale` times the precisions with sacreBLEU's "exp" smoothing (signature s.exp): the i-th n-gram order without a
/// match has precision 1 / (2^i · total). 0 for orders without n-grams, and all 0 if nothing matches
/// (docs/spec/training.md §6.2).
std::array<double, 4> exp_smoothed_precisions(const BleuStats& stats, double scale);
/// BLEU with these precisions, for raw text.
double bleu_exp_smoothed(const BleuStats& stats);
/// The same in sacreBLEU's order of operations, so that ties are rounded as there. The last bits differ.
double sacrebleu(const BleuStats& stats);

}  // namespace tearless
