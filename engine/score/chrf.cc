// chrF and chrF++ as sacreBLEU 2 computes them (base/score/chrf.h). Characters are code points without white space
// (ngrams.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/score/chrf.h"
#include "base/score/ngrams.h"
#include "base/utf8.h"
#include "engine/score/metric.h"

namespace tearless::engine {

std::unique_ptr<TextMetric> chrf_metric();

namespace {

constexpr auto kCharacterOrder = static_cast<size_t>(kChrfCharacterOrder);
constexpr int64_t kMaxWordOrder = 2;

size_t character_length(std::string_view text) { return std::max<size_t>(utf8_length(text), 1); }

/// The characters that are no white space, each as the number that its bytes make.
std::vector<uint32_t> characters_of(std::string_view line) {
  std::vector<uint32_t> characters;
  characters.reserve(line.size());
  while (!line.empty()) {
    const size_t space = unicode_space_length(line);
    if (space > 0) {
      line.remove_prefix(space);
      continue;
    }
    const size_t length = character_length(line);
    uint32_t character = 0;
    for (const char c : line.substr(0, length)) character = character << 8 | static_cast<unsigned char>(c);
    characters.push_back(character);
    line.remove_prefix(length);
  }
  return characters;
}

bool is_punctuation(char c) { return c > ' ' && c < 0x7F && !std::isalnum(static_cast<unsigned char>(c)); }

/// The words, with one ASCII punctuation character set apart from the end of each, or else from its beginning.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split_unicode_words(line)) {
    if (character_length(word) == word.size()) {
      words.push_back(word);
    } else if (is_punctuation(word.back())) {
      words.insert(words.end(), {word.substr(0, word.size() - 1), word.substr(word.size() - 1)});
    } else if (is_punctuation(word.front())) {
      words.insert(words.end(), {word.substr(0, 1), word.substr(1)});
    } else {
      words.push_back(word);
    }
  }
  return words;
}

/// Appends, for each order of n-grams: those of the hypothesis, 0 if the reference has none; those of the reference;
/// matches.
template <class Symbol>
void append_counts(const std::vector<Symbol>& hypothesis, const std::vector<Symbol>& reference, size_t orders,
                   TextMetric::Statistics& statistics) {
  std::array<int64_t, kCharacterOrder> matches{};
  count_matches(std::span<const Symbol>(hypothesis), std::span<const Symbol>(reference),
                std::span(matches).first(orders));
  for (size_t n = 1; n <= orders; ++n) {
    const int64_t in_reference = count_ngrams(static_cast<int64_t>(reference.size()), static_cast<int64_t>(n));
    const int64_t in_hypothesis = count_ngrams(static_cast<int64_t>(hypothesis.size()), static_cast<int64_t>(n));
    statistics.insert(statistics.end(), {in_reference > 0 ? in_hypothesis : 0, in_reference, matches[n - 1]});
  }
}

class ChrF final : public TextMetricOf<ChrF> {
 public:
  ChrF() { meaning = "F-score of character n-grams up to order 6, as sacreBLEU's chrF2"; }

  void describe(SettingsVisitor& visitor) override {
    visitor.integer({.key = "beta", .meaning = "weight of recall (default 2)", .min = 1, .max = 100}, beta_);
    visitor.integer({.key = "word_order",
                     .meaning = "highest order of word n-grams (default 0; 2: chrF++)",
                     .min = 0,
                     .max = kMaxWordOrder},
                    word_order_);
  }

  bool needs_spaces() const override { return false; }

  Statistics statistics(std::string_view hypothesis, std::string_view reference) const override {
    Statistics statistics;
    statistics.reserve(3 * (kCharacterOrder + kMaxWordOrder));
    append_counts(characters_of(hypothesis), characters_of(reference), kCharacterOrder, statistics);
    if (word_order_ > 0)
      append_counts(words_of(hypothesis), words_of(reference), static_cast<size_t>(word_order_), statistics);
    return statistics;
  }

  std::vector<std::string> columns() const override { return chrf_columns(beta_, word_order_); }

  TextScore score(const Statistics& sum) const override {
    TextScore score{.name = fmt::format("chrF{}{:+<{}}", beta_, "", word_order_), .value = chrf(sum, beta_)};
    score.signature = signature_of({{"case", "mixed"},
                                    {"eff", "yes"},
                                    {"nc", std::to_string(kCharacterOrder)},
                                    {"nw", std::to_string(word_order_)},
                                    {"space", "no"}});
    score.line = fmt::format("{}|{} = {:.2f}", score.name, score.signature, score.value);
    return score;
  }

 private:
  int64_t beta_ = 2;
  int64_t word_order_ = 0;
};

}  // namespace

std::unique_ptr<TextMetric> chrf_metric() { return std::make_unique<ChrF>(); }

}  // namespace tearless::engine
