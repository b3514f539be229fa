// BLEU (Papineni et al. 2002) as multi-bleu.perl and sacreBLEU count it, from statistics that add up over sentences.
// Not here: how hypotheses are made, and significance.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tearless::engine {

/// Sufficient statistics of a sentence or, added up, of a corpus: matches and totals of n-grams, n = 1 … 4.
struct BleuStats {
  std::array<int64_t, 4> matches{};
  std::array<int64_t, 4> totals{};
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;

  BleuStats& operator+=(const BleuStats& other);
  bool operator==(const BleuStats&) const = default;
};

/// One sentence against one reference. Words are what multi-bleu.perl sees, which reads bytes: Perl's white space there
/// is ASCII's (space, \t, \n, \v, \f, \r), so a CR ends a word while U+00A0, U+0085 and U+2028 are parts of words.
BleuStats bleu_stats(std::string_view hypothesis, std::string_view reference);

/// multi-bleu.perl, 0 … 100, unrounded; 0 where any precision is 0.
double bleu(const BleuStats& stats);

/// sacreBLEU's "exp" smoothing (signature s.exp): the i-th order without a match gets the precision 1 / (2^i · total).
/// For bleu_13a.
double bleu_exp_smoothed(const BleuStats& stats);

/// To two decimals, as multi-bleu.perl prints it and the plateau rule compares it.
double round_bleu(double bleu);

/// The 13a tokeniser (mteval-v13a, as in sacreBLEU): words with one space between. White space is Unicode's here, as in
/// Python.
std::string tokenise_13a(std::string_view line);

}  // namespace tearless::engine
