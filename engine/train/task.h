// What the training loop asks of a task: which data, model, loss and scores belong together is the task's business
// alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/run_directory.h"
#include "engine/train/trainable.h"

namespace tearless::engine {

using NamedNumbers = std::map<std::string, double>;

/// One look at the dev set.
struct Evaluation {
  NamedNumbers numbers;  // "dev.bleu", "dev.ppl" …
  double selection =
      0;  // what checkpoints are chosen by and plateaus seen in: higher is better, rounded as it is printed
};

class Task : public Trainable {
 public:
  /// Cuts pass `pass` (from 0) over the training set into batches, and says how many. A function of the pass alone.
  virtual int64_t start_pass(int64_t pass) = 0;

  /// With the current parameters. Throws StopRequested where a stop is asked for meanwhile.
  virtual Evaluation evaluate() = 0;
  /// Final scores with the current parameters (those of the selected checkpoint); writes outputs/. Throws
  /// StopRequested.
  virtual NamedNumbers final_scores(const RunDirectory& run) = 0;
  /// The result files that final_scores() has written, relative to the run directory.
  virtual std::vector<std::string> output_files() const = 0;
};

/// exp(sum / tokens), capped so that it stays a number in JSON.
double perplexity(double sum, int64_t tokens);

}  // namespace tearless::engine
