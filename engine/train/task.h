// The interface between the training loop and a task. A task combines data, model, loss and scores; the loop knows none
// of them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/train/trainable.h"

namespace tearless::engine {

/// Results by name, as in metrics.jsonl and scores.json.
using NamedNumbers = std::map<std::string, double>;

/// The dev number that compares evaluations: it selects checkpoints, ends training early and defines plateaus.
struct Selection {
  std::string score;  // a number of Task::evaluate(), "dev.bleu"
  bool higher_is_better = true;
  int decimals = 2;  // as it is printed and compared

  /// The number that printing with `decimals` gives.
  double rounded(double value) const;
};

/// The metric of an early stop that was not made (observe.early_stop).
std::string would_stop_metric(const Selection& selection);

/// How long it took to make the outputs of a set: hypotheses or classes.
struct DecodingTime {
  double seconds = 0;
  int64_t sentences = 0;  // or images

  /// Its keys of measured.json.
  nlohmann::json measured() const;
};

/// The final results of a run.
struct FinalScores {
  NamedNumbers numbers;
  std::map<std::string, std::string> files;  // path relative to the run directory → content
  DecodingTime time = {};                    // of the test set or, of a derived run, of its set
};

/// The names of a task's numbers, as its settings tell them.
struct TaskNumbers {
  std::vector<std::string> training;  // of training_numbers()
  std::vector<std::string> dev;       // of evaluate()
  std::vector<std::string> final;     // of final_scores(); of some data not all of them
  Selection selection;
  std::string dev_loss;
};

class Task : public Trainable {
 public:
  /// The width d of the learning rate λ · d^-½ · …; 1 for a model without one.
  virtual int64_t schedule_width() const = 0;
  virtual Selection selection() const = 0;
  /// The number of evaluate() that compares evaluations with train.select.by = "loss"; lower is better.
  virtual std::string dev_loss() const = 0;

  /// Cuts pass `pass` (from 0) over the training set into batches and returns their number. A pure function of the
  /// pass.
  virtual int64_t start_pass(int64_t pass) = 0;

  /// Training numbers of an epoch besides its loss, from the sums over its updates: "train.ppl" …
  virtual NamedNumbers training_numbers(const LossSums& /*epoch*/) const { return {}; }
  /// Evaluates the current parameters on dev. Throws StopRequested if a stop is requested meanwhile.
  virtual NamedNumbers evaluate() = 0;
  /// Scores the current parameters, which are those of the model. Throws StopRequested as evaluate() does.
  virtual FinalScores final_scores() = 0;
};

}  // namespace tearless::engine
