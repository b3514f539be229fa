// Scores made again from what a run has left of its sentences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/score/measures.h"

namespace tearless::engine::test {

/// The score that the text of an outputs/<set>.stats makes: in any order of its sentences the same.
inline double recomputed(const std::string& score, const std::string& text) {
  SentenceStats stats = read_stats(text, "a .stats file");
  const ScoreOfSums made = score_of_sums(score, stats.columns, "a .stats file");
  const double value = made(stats.sum());
  constexpr unsigned kSeed = 1;
  std::shuffle(stats.rows.begin(), stats.rows.end(), std::mt19937(kSeed));
  EXPECT_EQ(made(read_stats(stats_text(stats), "the same").sum()), value) << score << ", seed " << kSeed;
  return value;
}

}  // namespace tearless::engine::test
