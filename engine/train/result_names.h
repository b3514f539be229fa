// The names that a run will have in scores.json and metrics.jsonl, before it is trained: what `check` answers.
#pragma once

#include <set>
#include <string>

#include "engine/model/parameters.h"
#include "engine/train/options.h"
#include "engine/train/task.h"

namespace tearless::engine {

/// In some names `*` stands for the number of a layer.
struct ResultNames {
  std::set<std::string> scores, metrics;
};

/// Names of numbers that the run may leave: some depend on the data, or on whether it diverges. `model`: the parameters
/// of its model.
ResultNames result_names(const TaskNumbers& task, const Parameters& model, const TrainOptions& train,
                         const ExecutionOptions& execution);

}  // namespace tearless::engine
