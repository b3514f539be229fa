// What the files of an attempt say of it.
#include "harness/runs/attempt_files.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/paths.h"

namespace tearless::harness {
namespace {

TEST(ReadAttempt, ItsLastCheckpointIsWhatTheNextOneFoundNotWhatIsThereNow) {
  const test::TempFolder folder;
  const RunDirectory run(folder / "0123");
  make_folders(run.checkpoints());
  write_start(run, run.make_attempt(), {});
  make_folders(run.checkpoints() / "step-5");
  run.make_attempt();  // died before it began: it found nothing
  write_start(run, run.make_attempt(), {});
  make_folders(run.checkpoints() / "step-9");
  EXPECT_EQ(read_attempt(run, 1).checkpoint, 5);
  EXPECT_EQ(read_attempt(run, 3).checkpoint, 9);
}

}  // namespace
}  // namespace tearless::harness
