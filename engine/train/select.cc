#include "engine/train/select.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tearless::engine {
namespace {

constexpr auto kSelectKinds = std::to_array<std::string_view>({"best", "last", "last_epochs"});
constexpr auto kSelectBy = std::to_array<std::string_view>({"score", "loss"});

}  // namespace

void describe(SettingsVisitor& v, SelectOptions& o, bool compares) {
  v.choice(
      {.key = "kind",
       .meaning = "evaluations whose checkpoints make the model: the `best`, of equal ones the latest; the `last`; "
                  "`last_epochs`, without one that ends the training within an epoch",
       .neutral = "best"},
      o.kind, kSelectKinds);
  v.integer(
      {.key = "count",
       .meaning = "number of these; above 1 the model is the mean of their parameters. If the training ends before "
                  "there are so many, it is the mean of those there are (score `averaged_checkpoints`)",
       .min = 1,
       .max = 1000,
       .neutral = 1},
      o.count);
  v.choice(
      {.key = "by",
       .meaning = "dev number that compares evaluations, also for early_stop and decay on plateaus: the `score` of "
                  "the task (dev.bleu …), or the `loss` (dev.ppl_smoothed, as in fairseq, or dev.loss)",
       .neutral = "score",
       .switched_off_by = o.kind == SelectOptions::Kind::kBest || compares ? "" : "train.select.kind"},
      o.by, kSelectBy);
}

Selection compared_by(const SelectOptions& options, const Selection& score, const std::string& dev_loss) {
  if (options.by == SelectOptions::By::kScore) return score;
  return {.score = dev_loss, .higher_is_better = false, .decimals = 4};
}

void select(const SelectOptions& options, bool ends_epoch, SelectedStep next, std::vector<SelectedStep>& selected) {
  using Kind = SelectOptions::Kind;
  if (options.kind == Kind::kLastEpochs && !ends_epoch) return;
  selected.push_back(std::move(next));
  if (std::ssize(selected) <= options.count) return;
  selected.erase(options.kind == Kind::kBest ? std::ranges::min_element(selected, {}, &SelectedStep::value)
                                             : selected.begin());
}

}  // namespace tearless::engine
