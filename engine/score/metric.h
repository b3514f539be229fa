// The text metrics of `tearless-engine score --metric`: functions of hypotheses and references that print what the
// original program prints.
//
// To add one:
//   1. a file beside this one with a class derived from TextMetricOf and a function `<name>_metric()` that makes one;
//   2. a line METRIC(<name>) in metrics.def;
//   3. a row of that name in base/score/measures.cc.
// It is then a legal --metric, with '-' for '_' in its name, and its options are options of the command.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/kinds.h"
#include "base/score/sentence_stats.h"
#include "base/settings.h"

namespace tearless::engine {

/// What a metric makes of summed statistics.
struct TextScore {
  std::string name = {};       // as the original program prints it: "BLEU", "chrF2"
  double value = 0;            // 0 … 100, unrounded
  std::string details = {};    // what the original program prints behind the value; "": nothing
  std::string signature = {};  // in sacreBLEU's form, with "version:tearless-0.1.0"
  std::string line = {};       // the original program's, two decimals, without newline
};

class TextMetric {
 public:
  /// Sums of counts. Those of two sets of sentences add up, number by number, to those of both together.
  using Statistics = std::vector<int64_t>;

  virtual ~TextMetric() = default;
  virtual std::unique_ptr<TextMetric> clone() const = 0;

  std::string_view name = {};     // set from metrics.def
  std::string_view meaning = {};  // the original program and its source, for the help

  /// Describes the metric's options as settings: `--word-order` sets word_order.
  virtual void describe(SettingsVisitor& /*visitor*/) {}
  /// Whether words are what spaces separate, so that text without spaces scores near 0.
  virtual bool needs_spaces() const { return true; }
  /// The names of the statistics. From them and the metric's own name the score of sums is known
  /// (base/score/measures.h).
  virtual std::vector<std::string> columns() const = 0;
  /// The statistics of one sentence with one reference, one for each column. Bytes that are not UTF-8 count as
  /// characters.
  virtual Statistics statistics(std::string_view hypothesis, std::string_view reference) const = 0;
  /// The score of summed statistics. REQUIRES: they are of at least one sentence.
  virtual TextScore score(const Statistics& sum) const = 0;
};

/// The base of every metric.
template <class Metric>
using TextMetricOf = KindOf<TextMetric, Metric>;

/// All metrics with their options at their defaults, in the order of metrics.def.
const Kinds<TextMetric>& text_metrics();

/// The statistics of each sentence. REQUIRES: as many hypotheses as references (std::logic_error).
SentenceStats sentence_stats(const TextMetric& metric, const std::vector<std::string_view>& hypotheses,
                             const std::vector<std::string_view>& references);

/// The score of all sentences. REQUIRES: as many hypotheses as references, and at least one
/// (std::logic_error).
TextScore score_text(const TextMetric& metric, const std::vector<std::string_view>& hypotheses,
                     const std::vector<std::string_view>& references);

/// The score as sacreBLEU 2 prints one with `--format json`: the value to two decimals, and the parts of the signature.
std::string score_json(const TextScore& score);

/// sacreBLEU 2's signature: "nrefs:1|" and `parts`, key and value, then "version:tearless-0.1.0".
std::string signature_of(const std::vector<std::pair<std::string_view, std::string>>& parts);
/// "tearless-0.1.0".
std::string signed_version();

}  // namespace tearless::engine
