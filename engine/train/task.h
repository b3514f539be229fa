// What the training loop asks of a task: which data, model, loss and scores belong together is the task's business
// alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/train/trainable.h"

namespace tearless::engine {

using NamedNumbers = std::map<std::string, double>;

/// One look at the dev set.
struct Evaluation {
  NamedNumbers numbers;  // "dev.bleu", "dev.ppl" …
  double selection =
      0;  // what checkpoints are chosen by and plateaus seen in: higher is better, rounded as it is printed
};

/// What a run is judged by.
struct FinalScores {
  NamedNumbers numbers;
  std::map<std::string, std::string> files;  // result file, relative to the run directory → its bytes
};

class Task : public Trainable {
 public:
  /// Cuts pass `pass` (from 0) over the training set into batches, and says how many. A function of the pass alone.
  virtual int64_t start_pass(int64_t pass) = 0;

  /// With the current parameters. Throws StopRequested where a stop is asked for meanwhile.
  virtual Evaluation evaluate() = 0;
  /// With the current parameters, those of the selected checkpoint. Throws StopRequested.
  virtual FinalScores final_scores() = 0;
};

/// exp(sum / tokens), capped so that it stays a number in JSON.
double perplexity(double sum, int64_t tokens);

}  // namespace tearless::engine
