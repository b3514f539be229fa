#include "base/score/measures.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "base/score/bleu.h"
#include "base/score/chrf.h"
#include "base/utf8.h"

namespace tearless {
namespace {

using Columns = std::vector<std::string>;

double bits(int64_t microbits, int64_t symbols) {
  return static_cast<double>(microbits) / 1e6 / static_cast<double>(symbols);
}

/// Empty if the columns are not those that the score needs.
using Bind = ScoreOfSums (*)(const Columns&);

template <double (*score)(const BleuStats&)>
ScoreOfSums bleu_of(const Columns& columns) {
  if (columns != BleuStats::columns()) return nullptr;
  return [](std::span<const int64_t> sum) { return score(BleuStats::of_numbers(sum)); };
}

ScoreOfSums chrf_of(const Columns& columns) {
  const std::optional<int64_t> beta = chrf_beta(columns);
  if (!beta) return nullptr;
  return [beta = *beta](std::span<const int64_t> sum) { return chrf(sum, beta); };
}

/// Of two columns, wherever they stand.
ScoreOfSums of_two(const Columns& columns, std::string_view first, std::string_view second,
                   double (*score)(int64_t, int64_t)) {
  const auto one = std::ranges::find(columns, first), other = std::ranges::find(columns, second);
  if (one == columns.end() || other == columns.end()) return nullptr;
  const auto i = static_cast<size_t>(one - columns.begin()), k = static_cast<size_t>(other - columns.begin());
  return [=](std::span<const int64_t> sum) { return score(sum[i], sum[k]); };
}

struct Measure {
  std::string_view name;
  std::string_view columns;  // in words
  Bind bind;
};

constexpr std::string_view kBleuColumns =
    "matches_1 … matches_4, totals_1 … totals_4, hypothesis_length, reference_length";

// A trained run's BLEU and that of the text metrics are of the same columns.
constexpr Measure kMeasures[] = {
    {"bleu", kBleuColumns, bleu_of<bleu>},
    {"bleu_13a", kBleuColumns, bleu_of<bleu_exp_smoothed>},
    {"bleu_zh", kBleuColumns, bleu_of<bleu_exp_smoothed>},
    {"bleu_char", kBleuColumns, bleu_of<bleu_exp_smoothed>},
    {"multi_bleu", kBleuColumns, bleu_of<bleu>},
    {"sacrebleu", kBleuColumns, bleu_of<sacrebleu>},
    {"chrf", "chrF2_hypothesis_c1, chrF2_reference_c1, chrF2_matches_c1 …", chrf_of},
    {"accuracy", "correct, examples", [](const Columns& c) { return of_two(c, "correct", "examples", accuracy); }},
    {"bpc", "microbits, symbols", [](const Columns& c) { return of_two(c, "microbits", "symbols", bits); }},
    {"uas", "correct_heads, tokens", [](const Columns& c) { return of_two(c, "correct_heads", "tokens", accuracy); }},
    {"uas_no_punct", "correct_heads_no_punct, tokens_no_punct",
     [](const Columns& c) { return of_two(c, "correct_heads_no_punct", "tokens_no_punct", accuracy); }},
    {"las", "correct_arcs, tokens", [](const Columns& c) { return of_two(c, "correct_arcs", "tokens", accuracy); }},
};

}  // namespace

double accuracy(int64_t correct, int64_t examples) {
  return 100.0 * static_cast<double>(correct) / static_cast<double>(examples);
}

const std::vector<std::string>& accuracy_columns() {
  static const std::vector<std::string> names = {"correct", "examples"};
  return names;
}

std::vector<std::string> measure_names() {
  std::vector<std::string> names;
  std::ranges::transform(kMeasures, std::back_inserter(names), [](const Measure& m) { return std::string(m.name); });
  return names;
}

ScoreOfSums score_of_sums(std::string_view score, const Columns& columns, std::string_view file) {
  const std::string name(score.substr(score.rfind('.') + 1));
  const auto measure = std::ranges::find(kMeasures, std::string_view(name), &Measure::name);
  if (measure == std::end(kMeasures)) {
    const std::vector<std::string> names = measure_names();
    fail("{} is not made of sums over sentences{}; such scores end with {}", printable(score),
         did_you_mean(name, names), fmt::join(names, ", "));
  }
  ScoreOfSums made = measure->bind(columns);
  if (!made) {
    fail("{} has not the statistics of {}: its columns are {}, those of {} are {}", file, printable(score),
         printable(fmt::format("{}", fmt::join(columns, ", "))), name, measure->columns);
  }
  return made;
}

}  // namespace tearless
