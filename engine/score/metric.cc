#include "engine/score/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/build_stamp.h"
#include "base/error.h"

namespace tearless::engine {

#define METRIC(metric) std::unique_ptr<TextMetric> metric##_metric();
#include "engine/score/metrics.def"
#undef METRIC

const Kinds<TextMetric>& text_metrics() {
#define METRIC(metric) {#metric, metric##_metric},
  static const Kinds<TextMetric> metrics{{
#include "engine/score/metrics.def"
  }};
#undef METRIC
  return metrics;
}

SentenceStats sentence_stats(const TextMetric& metric, const std::vector<std::string_view>& hypotheses,
                             const std::vector<std::string_view>& references) {
  require(hypotheses.size() == references.size(), "score: not one reference for each hypothesis");
  SentenceStats stats{.columns = metric.columns()};
  for (size_t i = 0; i < hypotheses.size(); ++i) stats.rows.push_back(metric.statistics(hypotheses[i], references[i]));
  return stats;
}

TextScore score_text(const TextMetric& metric, const std::vector<std::string_view>& hypotheses,
                     const std::vector<std::string_view>& references) {
  require(!hypotheses.empty(), "score: no hypotheses");
  return metric.score(sentence_stats(metric, hypotheses, references).sum());
}

std::string score_json(const TextScore& score) {
  nlohmann::ordered_json json = {{"name", score.name},
                                 {"score", std::strtod(fmt::format("{:.2f}", score.value).c_str(), nullptr)},
                                 {"signature", score.signature}};
  if (!score.details.empty()) json["verbose_score"] = score.details;
  std::string_view rest = score.signature;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const size_t colon = part.find(':');  // the signature of sacreBLEU 1 has none
    if (colon != std::string_view::npos) json[std::string(part.substr(0, colon))] = part.substr(colon + 1);
  }
  return json.dump(1);
}

std::string signed_version() {
  const std::string_view stamp = build_stamp();
  return fmt::format("tearless-{}", stamp.substr(0, stamp.find(' ')));
}

std::string signature_of(const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string text = "nrefs:1|";
  for (const auto& [key, value] : parts) text += fmt::format("{}:{}|", key, value);
  return text + "version:" + signed_version();
}

}  // namespace tearless::engine
