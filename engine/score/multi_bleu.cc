// multi-bleu.perl of the Moses toolkit: BLEU of tokenised text (docs/spec/training.md §6.1), after the compound split
// of "Attention is all you need" if asked for (§6.4). Bytes as Perl takes them without a locale: white space and
// capitals are ASCII's, so no Unicode table is needed.
//
// Two results are not the script's: for hypotheses without any word it fails, and for a hypothesis that is 10,000 words
// longer or shorter than its reference it takes the reference to have 9,999.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "base/score/bleu.h"
#include "engine/score/metric.h"

namespace tearless::engine {

std::unique_ptr<TextMetric> multi_bleu_metric();

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Sets apart each hyphen between two bytes that are no white space, from left to right. A byte belongs to one match
/// only: of "a-b-c" the second hyphen stays, of "a-é-c" it does not, because é has two bytes.
std::string split_compounds(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (i + 2 < line.size() && line[i + 1] == '-' && !is_space(line[i]) && !is_space(line[i + 2])) {
      out.append(1, line[i]).append(" ##AT##-##AT## ").append(1, line[i + 2]);
      i += 2;
    } else {
      out += line[i];
    }
  }
  return out;
}

class MultiBleu final : public TextMetricOf<MultiBleu> {
 public:
  MultiBleu() { meaning = "BLEU of tokenised text, as multi-bleu.perl"; }

  void describe(SettingsVisitor& visitor) override {
    visitor.flag({.key = "lower_case", .meaning = "compare without case, of ASCII letters (the script's -lc)"},
                 lower_case_);
    visitor.flag({.key = "compound_split", .meaning = "set hyphens within words apart first, as for WMT14 En-De"},
                 compound_split_);
  }

  Statistics statistics(std::string_view hypothesis, std::string_view reference) const override {
    const BleuStats stats = bleu_stats(prepared(hypothesis), prepared(reference));
    return stats.numbers();
  }

  std::vector<std::string> columns() const override { return BleuStats::columns(); }

  TextScore score(const Statistics& sum) const override {
    const BleuStats stats = BleuStats::of_numbers(sum);
    TextScore score{.name = "BLEU",
                    .value = bleu(stats),
                    .signature = signature_of({{"case", lower_case_ ? "lc" : "mixed"},
                                               {"eff", "no"},
                                               {"tok", compound_split_ ? "compound-split" : "none"},
                                               {"smooth", "none"}})};
    if (stats.reference_length == 0) {
      score.value = 0;
      score.details = "0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)";
      score.line = "BLEU = 0, " + score.details;
      return score;
    }
    std::array<double, 4> percents{};
    for (size_t n = 0; n < 4; ++n) {
      if (stats.totals[n] > 0)
        percents[n] = 100 * (static_cast<double>(stats.matches[n]) / static_cast<double>(stats.totals[n]));
    }
    score.details = fmt::format(
        "{:.1f} (BP={:.3f}, ratio={:.3f}, hyp_len={}, ref_len={})", fmt::join(percents, "/"), brevity_penalty(stats),
        static_cast<double>(stats.hypothesis_length) / static_cast<double>(stats.reference_length),
        stats.hypothesis_length, stats.reference_length);
    score.line = fmt::format("BLEU = {:.2f}, {}", score.value, score.details);
    return score;
  }

 private:
  std::string prepared(std::string_view line) const {
    std::string text = compound_split_ ? split_compounds(line) : std::string(line);
    if (lower_case_) {
      for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      }
    }
    return text;
  }

  bool lower_case_ = false;
  bool compound_split_ = false;
};

}  // namespace

std::unique_ptr<TextMetric> multi_bleu_metric() { return std::make_unique<MultiBleu>(); }

}  // namespace tearless::engine
