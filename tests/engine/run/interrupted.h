// A task that is disturbed at chosen places, in this process.
#pragma once

#include <signal.h>

#include <functional>
#include <memory>
#include <utility>

#include "engine/run/run_options.h"
#include "engine/train/stop_request.h"
#include "engine/train/trainer.h"
#include "tests/engine/run/small_runs.h"

namespace tearless::engine::test {

class Interrupted final : public Task {
 public:
  explicit Interrupted(std::unique_ptr<Task> task) : task_(std::move(task)) {}

  Parameters& parameters() override { return task_->parameters(); }
  int64_t start_pass(int64_t pass) override { return task_->start_pass(pass); }
  std::vector<std::string> loss_names() const override { return task_->loss_names(); }
  int64_t schedule_width() const override { return task_->schedule_width(); }
  Selection selection() const override { return task_->selection(); }
  std::string dev_loss() const override { return task_->dev_loss(); }
  NamedNumbers training_numbers(const LossSums& epoch) const override { return task_->training_numbers(epoch); }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override { return task_->ready(index, update); }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    if (at_update) at_update(context.update);
    return task_->loss(context, batch);
  }
  NamedNumbers evaluate() override {
    if (at_evaluation) at_evaluation();
    return task_->evaluate();
  }
  FinalScores final_scores() override {
    if (at_final_scores) at_final_scores();
    return task_->final_scores();
  }
  std::vector<at::Tensor> carried() override { return task_->carried(); }

  // Called before that work.
  std::function<void(uint32_t)> at_update;
  std::function<void()> at_evaluation, at_final_scores;

 private:
  std::unique_ptr<Task> task_;
};

/// An attempt on `run` by that task.
inline ExitCode attempt_by(Task& task, const RunOptions& options, const RunDirectory& run) {
  std::filesystem::create_directories(run.root());
  stop_with_checkpoint();
  return Trainer(task, options.train, options.run, run, run.make_attempt()).run();
}

inline void ask_to_stop() { ::raise(SIGTERM); }

/// The bytes of everything that a run leaves as its result.
inline std::string results_of(const RunDirectory& run) {
  std::string all;
  for (const auto& file : {run.metrics(), run.gradient_norms(), run.scores(), run.done()}) all += read_text(file);
  std::map<std::string, std::string> outputs;
  for (const auto& file : std::filesystem::directory_iterator(run.outputs())) {
    outputs[file.path().filename()] = read_text(file.path());
  }
  for (const auto& [name, text] : outputs) all += name + "\n" + text;
  return all;
}

}  // namespace tearless::engine::test
