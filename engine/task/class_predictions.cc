#include "engine/task/class_predictions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>
#include <iterator>

#include "base/score/measures.h"

namespace tearless::engine {

void ClassPredictions::add(const at::Tensor& logits, std::span<const int32_t> labels) {
  const at::Tensor log_p = at::log_softmax(logits.to(at::kDouble), 1).cpu();
  const double* row = log_p.const_data_ptr<double>();
  const int64_t count = log_p.size(1);
  for (const int32_t label : labels) {
    classes_.push_back(static_cast<int32_t>(std::max_element(row, row + count) - row));
    right_.push_back(classes_.back() == label);
    nll_ -= row[label];
    row += count;
  }
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

NamedNumbers ClassPredictions::scores(const std::string& set) const {
  constexpr double kMaxLoss = 700;  // also where the parameters are not finite: JSON has finite numbers alone
  return {{set + ".accuracy", accuracy(std::ranges::count(right_, true), std::ssize(right_))},
          {set + ".loss", std::min(kMaxLoss, nll_ / static_cast<double>(classes_.size()))}};
}

SentenceStats ClassPredictions::stats() const {
  SentenceStats stats{.columns = accuracy_columns()};
  for (const bool right : right_) stats.rows.push_back({right, 1});
  return stats;
}

std::string ClassPredictions::lines(std::span<const std::string> names) const {
  std::string text;
  for (const int32_t label : classes_) text += names[static_cast<size_t>(label)] + "\n";
  return text;
}

TaskNumbers class_numbers() {
  return {.training = {},
          .dev = ClassPredictions::score_names("dev"),
          .final = ClassPredictions::score_names("test"),
          .selection = {.score = "dev.accuracy"},
          .dev_loss = "dev.loss"};
}

FinalScores final_class_scores(const ClassPredictions& dev, const ClassPredictions& test,
                               std::span<const std::string> names) {
  return {.numbers = test.scores("test"),
          .files = {{"outputs/dev.classes", dev.lines(names)},
                    {"outputs/dev.stats", stats_text(dev.stats())},
                    {"outputs/test.classes", test.lines(names)},
                    {"outputs/test.stats", stats_text(test.stats())}},
          .time = test.time()};
}

}  // namespace tearless::engine
