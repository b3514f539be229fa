// The interface between the training loop and a task. A task combines data, model, loss and scores; the loop knows none
// of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/train/trainable.h"

namespace tearless::engine {

/// Results by name, as in metrics.jsonl and scores.json.
using NamedNumbers = std::map<std::string, double>;

/// The result of an evaluation on dev.
struct Evaluation {
  NamedNumbers numbers;  // "dev.bleu", "dev.ppl" …
  /// Selects checkpoints and defines plateaus: higher is better. Rounded as it is printed.
  double selection = 0;
};

/// The final results of a run.
struct FinalScores {
  NamedNumbers numbers;
  std::map<std::string, std::string> files;  // path relative to the run directory → content
};

class Task : public Trainable {
 public:
  /// Cuts pass `pass` (from 0) over the training set into batches and returns their number. A pure function of the
  /// pass.
  virtual int64_t start_pass(int64_t pass) = 0;

  /// Evaluates the current parameters on dev. Throws StopRequested if a stop is requested meanwhile.
  virtual Evaluation evaluate() = 0;
  /// Scores the current parameters, which are those of the selected checkpoint. Throws StopRequested likewise.
  virtual FinalScores final_scores() = 0;
};

/// exp(sum / tokens), limited to e^700 so that JSON can represent it; 0 without tokens.
double perplexity(double sum, int64_t tokens);

}  // namespace tearless::engine
