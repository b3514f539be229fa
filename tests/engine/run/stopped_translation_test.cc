// The translation task stopped at chosen updates, in this process: what is open then (a report, an epoch, a pass,
// random numbers) is resumed, with the same bytes as result.
#include <gtest/gtest.h>

#include "tests/engine/run/interrupted.h"
#include "tests/engine/train/in_memory.h"

namespace tearless::engine::stopped_translation_test {
namespace {

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
  const auto attempt = [&](const RunDirectory& run, uint32_t stop_at) {
    test::Interrupted task(test::task_of(options));
    task.at_update = [&](uint32_t update) {
      if (update == stop_at) test::ask_to_stop();
    };
    return test::attempt_by(task, options, run);
  };
  const RunDirectory undisturbed(runs.folder() / "undisturbed" / "run"), stopped(runs.folder() / "stopped" / "run");
  ASSERT_EQ(attempt(undisturbed, 0), kExitDone);
  for (const uint32_t update : {2, 5, 8, 11, 13}) {
    ASSERT_EQ(attempt(stopped, update), kExitStopped) << update;
    EXPECT_TRUE(std::filesystem::exists(stopped.checkpoints() / ("step-" + std::to_string(update))));
  }
  ASSERT_EQ(attempt(stopped, 0), kExitDone);
  EXPECT_EQ(test::results_of(stopped), test::results_of(undisturbed));
}

}  // namespace
}  // namespace tearless::engine::stopped_translation_test
