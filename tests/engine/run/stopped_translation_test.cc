// The translation task stopped at chosen updates, in this process: what is open then (a report, an epoch, a pass,
// random numbers) is resumed, with the same bytes as result.
#include <gtest/gtest.h>
#include <signal.h>

#include "engine/data/prepared.h"
#include "engine/task/translate.h"
#include "engine/train/stop_request.h"
#include "engine/train/trainer.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/train/in_memory.h"

namespace tearless::engine {
namespace {

/// A translation that is asked to stop in the middle of one update.
class Interrupted final : public Task {
 public:
  Interrupted(const RunOptions& options, int64_t stop_at) : task_(test::translate_task(options)), stop_at_(stop_at) {}

  Parameters& parameters() override { return task_.parameters(); }
  int64_t start_pass(int64_t pass) override { return task_.start_pass(pass); }
  std::vector<std::string> loss_names() const override { return task_.loss_names(); }
  int64_t schedule_width() const override { return task_.schedule_width(); }
  Selection selection() const override { return task_.selection(); }
  NamedNumbers training_numbers(const LossSums& epoch) const override { return task_.training_numbers(epoch); }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override { return task_.ready(index, update); }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    if (context.update == stop_at_) ::raise(SIGTERM);
    return task_.loss(context, batch);
  }
  NamedNumbers evaluate() override { return task_.evaluate(); }
  FinalScores final_scores() override { return task_.final_scores(); }

 private:
  Translate task_;
  int64_t stop_at_;
};

struct InMemoryRuns : private test::InMemory, test::SmallRuns {};

TEST(StoppedTranslation, AnywhereLeavesTheSameBytes) {
  const InMemoryRuns runs;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const char* line : {"a b c d", "b a", "c d a", "d", "a a b", "c b d a b", "d c", "b"})
    pairs.emplace_back(line, std::string(line) + " a");
  for (const char* set : {"train", "dev", "test"}) runs.write(set, pairs);
  const RunOptions options = runs.options(test::with(test::corpus_settings(), {{"text.kind", "segmented"},
                                                                               {"model.encoder_layers", 1},
                                                                               {"model.decoder_layers", 1},
                                                                               {"model.d_model", 16},
                                                                               {"model.d_ff", 16},
                                                                               {"model.heads", 2},
                                                                               {"train.batch.tokens", 12},
                                                                               {"train.epoch_updates", 7},
                                                                               {"train.max_epochs", 2},
                                                                               {"train.schedule.kind", "nowarmup"},
                                                                               {"train.schedule.lr", 1e-2},
                                                                               {"run.log_updates", 3}}));
  const auto attempt = [&](const RunDirectory& run, int64_t stop_at) {
    std::filesystem::create_directories(run.root());
    Interrupted task(options, stop_at);
    stop_with_checkpoint();
    return Trainer(task, options.train, options.run, run, run.make_attempt()).run();
  };
  const auto results = [](const RunDirectory& run) {
    std::string all;
    for (const auto& file : {run.metrics(), run.scores(), run.outputs() / "dev.hyp", run.outputs() / "test.hyp",
                             run.outputs() / "test.stats", run.done()})
      all += test::read_text(file);
    return all;
  };
  const RunDirectory undisturbed(runs.folder() / "undisturbed" / "run"), stopped(runs.folder() / "stopped" / "run");
  ASSERT_EQ(attempt(undisturbed, 0), kExitDone);
  for (const int64_t update : {2, 5, 8, 11, 13}) {
    ASSERT_EQ(attempt(stopped, update), kExitStopped) << update;
    EXPECT_TRUE(std::filesystem::exists(stopped.checkpoints() / ("step-" + std::to_string(update))));
  }
  ASSERT_EQ(attempt(stopped, 0), kExitDone);
  EXPECT_EQ(results(stopped), results(undisturbed));
}

}  // namespace
}  // namespace tearless::engine
