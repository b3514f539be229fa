// The checkpoints whose parameters make the model of a run (train.select; docs/spec/training.md §1.11, §6.7): one, or
// several whose mean it is. Only evaluations choose. A checkpoint that exists because of a stop is never among them, so
// the model does not depend on stops.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/settings.h"
#include "engine/train/task.h"

namespace tearless::engine {

/// [train.select]
struct SelectOptions {
  enum class Kind {
    kBest,       // of the best evaluations; of equal ones the latest
    kLast,       // of the last evaluations
    kLastEpochs  // of the last epochs: without an evaluation that ended the training within one
  };
  enum class By { kScore, kLoss };
  Kind kind = Kind::kBest;
  int64_t count = 1;   // checkpoints; above 1 the model is their mean
  By by = By::kScore;  // how evaluations are compared, also by train.early_stop and the decay on plateaus
};
/// `compares`: evaluations are compared even if `kind` is not best.
void describe(SettingsVisitor& visitor, SelectOptions& options, bool compares);

/// The dev number by which evaluations are compared: the task's score, or its loss.
Selection compared_by(const SelectOptions& options, const Selection& score, const std::string& dev_loss);

/// A selected evaluation, whose checkpoint is retained.
struct SelectedStep {
  int64_t step = 0;
  double value = 0;           // by which it was selected; higher is better
  NamedNumbers numbers = {};  // of the evaluation, with those of the training of its epoch
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SelectedStep, step, value, numbers)

/// Adds the evaluation `next` to `selected`, in ascending order of steps, or not; if one is then too many, it goes.
/// `ends_epoch`: the evaluation is at the end of an epoch.
void select(const SelectOptions& options, bool ends_epoch, SelectedStep next, std::vector<SelectedStep>& selected);

}  // namespace tearless::engine
