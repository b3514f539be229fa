// sacreBLEU (Post 2018): case kept, "exp" smoothing, and 13a or another of its tokenisers (docs/spec/training.md §6.2).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/score/bleu.h"
#include "engine/score/metric.h"
#include "engine/score/tokenise.h"

namespace tearless::engine {

std::unique_ptr<TextMetric> sacrebleu_metric();

namespace {

class SacreBleu final : public TextMetricOf<SacreBleu> {
 public:
  SacreBleu() { meaning = "BLEU of raw text, as sacreBLEU: 13a or another tokeniser, exp smoothing"; }

  void describe(SettingsVisitor& visitor) override {
    visitor.integer({.key = "signature", .meaning = "the form of sacreBLEU 1 or 2 (default)", .min = 1, .max = 2},
                    signature_);
    describe_tokeniser(visitor,
                       {.key = "tokeniser",
                        .meaning = "what makes words of raw text: 13a (default), zh for Chinese, char for other text "
                                   "without spaces",
                        .neutral = "13a"},
                       tokeniser_, kTokeniserNames);
  }
  bool needs_spaces() const override { return tokeniser_ == Tokeniser::k13a; }

  Statistics statistics(std::string_view hypothesis, std::string_view reference) const override {
    return bleu_stats(tokenise(tokeniser_, hypothesis), tokenise(tokeniser_, reference)).numbers();
  }

  std::vector<std::string> columns() const override { return BleuStats::columns(); }

  TextScore score(const Statistics& sum) const override {
    const BleuStats stats = BleuStats::of_numbers(sum);
    const std::array<double, 4> percents = exp_smoothed_precisions(stats, 100);
    TextScore score{.name = "BLEU", .value = sacrebleu(stats)};
    const double ratio = stats.reference_length > 0 ? static_cast<double>(stats.hypothesis_length) /
                                                          static_cast<double>(stats.reference_length)
                                                    : 0;
    score.details =
        fmt::format("{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", fmt::join(percents, "/"),
                    brevity_penalty(stats), ratio, stats.hypothesis_length, stats.reference_length);
    const bool old = signature_ == 1;
    const std::string tokeniser(kTokeniserNames[static_cast<size_t>(tokeniser_)]);
    score.signature =
        old ? fmt::format("case.mixed+numrefs.1+smooth.exp+tok.{}+version.{}", tokeniser, signed_version())
            : signature_of({{"case", "mixed"}, {"eff", "no"}, {"tok", tokeniser}, {"smooth", "exp"}});
    score.line =
        fmt::format("{}{}{} = {:.2f} {}", score.name, old ? '+' : '|', score.signature, score.value, score.details);
    return score;
  }

 private:
  int64_t signature_ = 2;
  Tokeniser tokeniser_ = Tokeniser::k13a;
};

}  // namespace

std::unique_ptr<TextMetric> sacrebleu_metric() { return std::make_unique<SacreBleu>(); }

}  // namespace tearless::engine
