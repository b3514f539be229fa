// tearless-engine score: BLEU of a file of hypotheses, as multi-bleu.perl or with the 13a tokeniser.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/run_directory.h"
#include "base/words.h"
#include "engine/commands.h"
#include "engine/score/bleu.h"

namespace tearless::engine {
namespace {

int score(const std::filesystem::path& hypothesis, const std::filesystem::path& reference, bool raw) {
  const std::string our_text = read_file(hypothesis), their_text = read_file(reference);
  const auto ours = split_lines(our_text), theirs = split_lines(their_text);
  if (ours.size() != theirs.size()) {
    fail("{} has {} lines, {} has {}: both must hold the same sentences, one a line", hypothesis.string(), ours.size(),
         reference.string(), theirs.size());
  }
  if (ours.empty()) fail("{} is empty", hypothesis.string());
  BleuStats sum;
  for (size_t i = 0; i < ours.size(); ++i) {
    sum += raw ? bleu_stats(tokenise_13a(ours[i]), tokenise_13a(theirs[i])) : bleu_stats(ours[i], theirs[i]);
  }
  std::string precisions;
  for (size_t n = 0; n < 4; ++n) {
    const double p =
        sum.totals[n] > 0 ? 100.0 * static_cast<double>(sum.matches[n]) / static_cast<double>(sum.totals[n]) : 0;
    precisions += fmt::format("{}{:.1f}", n > 0 ? "/" : "", p);
  }
  fmt::print("{} {:.2f}, {} (hypothesis {} words, reference {})\n", raw ? "bleu_13a" : "bleu",
             raw ? bleu_exp_smoothed(sum) : bleu(sum), precisions, sum.hypothesis_length, sum.reference_length);
  return kExitDone;
}

}  // namespace

Action command_score(CLI::App& app) {
  struct Arguments {
    std::filesystem::path hypothesis, reference;
    bool raw = false;
  };
  const auto args = std::make_shared<Arguments>();
  app.add_option("HYPOTHESES", args->hypothesis, "one sentence a line")->required();
  app.add_option("REFERENCES", args->reference, "the same sentences")->required();
  app.add_flag("--raw", args->raw, "the text is not tokenised: apply the 13a tokeniser");
  return [args] { return score(args->hypothesis, args->reference, args->raw); };
}

}  // namespace tearless::engine
