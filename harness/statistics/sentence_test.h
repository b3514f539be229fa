// Tests of the difference Δ of two systems over the sentences of a test set, and what the sentences add to its standard
// error.
#pragma once

#include <optional>

#include "harness/statistics/random.h"
#include "harness/statistics/sentence_pairs.h"

namespace tearless::harness {

/// Which differences are evidence against equal systems.
enum class Alternative { kTwoSided, kGreater, kLess };

/// Approximate randomisation (Riezler and Maxwell 2005; Clark et al. 2011): equal systems could have exchanged any
/// translation, so the two are swapped with probability ½, independently for each seed and sentence.
/// p = (#{|Δ*| ≥ |Δ|} + 1) / (samples + 1).
double randomisation_p(const SentencePairs& pairs, const Sampling& sampling = {},
                       Alternative alternative = Alternative::kTwoSided);

/// The paired bootstrap (Koehn 2004): sentences are drawn with replacement, the same ones for both systems and all
/// seeds. The differences are centred before their magnitudes are compared:
/// p = (#{|Δ* − Δ| ≥ |Δ|} + 1) / (samples + 1).
double bootstrap_p(const SentencePairs& pairs, const Sampling& sampling = {},
                   Alternative alternative = Alternative::kTwoSided);

/// The paired bootstrap as sacreBLEU 2.6 does it: it takes |Δ*| first, then subtracts the mean of these, and counts
/// those that exceed |Δ|. That rejects equal systems about twice as often as the level says (docs/statistics.md), so it
/// is only for comparison with numbers that were made so.
double sacrebleu_bootstrap_p(const SentencePairs& pairs, const Sampling& sampling = {.samples = 1000});

/// The variance of Δ over test sets of as many sentences, by the bootstrap.
double bootstrap_variance(const SentencePairs& pairs, const Sampling& sampling = {.samples = 1000});

/// The squared standard error of Δ, by source.
struct TwoSources {
  double seeds = 0;      // s²/n of the differences of n seeds
  double sentences = 0;  // bootstrap_variance()

  double standard_error() const;
};
/// nullopt for one seed.
std::optional<TwoSources> two_sources(const SentencePairs& pairs, const Sampling& sampling = {.samples = 1000});

}  // namespace tearless::harness
