#include "harness/results/sentences.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/omitted.h"
#include "base/run_directory.h"
#include "base/score/measures.h"
#include "base/words.h"
#include "harness/runs/measured.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {
namespace {

/// outputs/<set>.stats of the run whose score it is: that of "test.bleu", and of a derived run "beam8.test.bleu", is
/// outputs/test.stats. Empty for a name without a set.
std::filesystem::path stats_file(const Row& row, const std::string& score) {
  const std::string own = row.is_trained() ? score : score.substr(std::min(score.size(), row.derivation.size() + 1));
  const size_t dot = own.rfind('.');
  if (dot == std::string::npos) return {};
  return std::filesystem::path("outputs") / (own.substr(0, dot) + ".stats");
}

bool is_made_of_sums(const std::string& score) { return std::ranges::count(measure_names(), last_word(score)) > 0; }

/// nullopt: the run has none.
std::optional<std::shared_ptr<const SentenceStats>> sentences_of(const Store& store, const Row& row,
                                                                 const std::string& score, double value) {
  constexpr double kTolerance = 1e-9;  // sums are exact, and scores are printed with 17 digits
  const std::filesystem::path name = stats_file(row, score);
  if (name.empty()) return std::nullopt;
  const RunDirectory run = Workspace(store.root()).run(row.run.id);
  if (is_omitted(run, name)) return nullptr;
  const std::filesystem::path file = run.root() / name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  if (!std::filesystem::is_regular_file(file)) fail("{}: not a file", file.string());
  auto stats = std::make_shared<const SentenceStats>(read_stats(read_file(file), file.string()));
  const double again = score_of_sums(score, stats->columns, file.string())(stats->sum());
  if (std::abs(again - value) > kTolerance * std::max(1.0, std::abs(value))) {
    fail(
        "{}: it makes {} {}, but the run has {}: the file is of other outputs; to see what else is changed: tearless "
        "verify",
        file.string(), score, again, value);
  }
  return stats;
}

}  // namespace

void read_sentences(ResultSet& results, const std::vector<std::string>& scores) {
  if (!results.store) return;
  for (Row& row : results.rows) {
    for (const auto& [name, value] : row.result.scores) {
      const bool is_asked_for =
          std::ranges::any_of(scores, [&](const std::string& pattern) { return matches_score(pattern, name); });
      if (!is_asked_for || !is_made_of_sums(name)) continue;
      if (auto sentences = sentences_of(*results.store, row, name, value)) row.sentences.emplace(name, *sentences);
    }
  }
}

}  // namespace tearless::harness
