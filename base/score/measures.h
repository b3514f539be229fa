// The scores that are functions of sums over sentences (sentence_stats.h), by the last part of their names: that of
// "test.bleu_13a", and of "beam8.test.bleu_13a", is bleu_13a.
//
// A new one is a function of sums and a row of the table in measures.cc; what scores a set leaves its columns in the
// set's file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/score/sentence_stats.h"

namespace tearless {

/// The score of the sums of all columns, in their order.
using ScoreOfSums = std::function<double(std::span<const int64_t>)>;

/// The function that makes the score of that name. UserError, naming the score and `file`, if sums make no such score,
/// or not those of these columns.
ScoreOfSums score_of_sums(std::string_view score, const std::vector<std::string>& columns, std::string_view file);

/// The names that score_of_sums() knows.
std::vector<std::string> measure_names();

/// The columns of a right and a wrong answer: `correct` is 1 or 0, `examples` 1. They add up to an accuracy.
const std::vector<std::string>& accuracy_columns();
/// In percent.
double accuracy(int64_t correct, int64_t examples);

}  // namespace tearless
