// Which checkpoints of an ended run may go.
#include "harness/runs/old_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace tearless::harness::old_checkpoints_test {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

class OldCheckpointsTest : public testing::Test {
 protected:
  OldCheckpointsTest() : run_(folder_.path()) {
    for (const char* name : {"step-3", "step-6", "step-12", "tmp-9", "models"}) {
      fs::create_directories(run_.checkpoints() / name);
      test::write_text(run_.checkpoints() / name / "state.bin", "1234567");
    }
  }
  std::vector<std::string> names(const KeptCheckpoints& keep) const {
    std::vector<std::string> all;
    for (const fs::path& folder : old_checkpoints(run_, keep).folders) all.push_back(folder.filename());
    return all;
  }
  std::vector<std::string> there() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(run_.checkpoints())) all.push_back(entry.path().filename());
    return all;
  }

  test::TempFolder folder_;
  RunDirectory run_;
};

TEST_F(OldCheckpointsTest, AllOfARunWithoutASelectedOneAndLeftoversButNothingElse) {
  EXPECT_THAT(names({}), UnorderedElementsAre("step-3", "step-6", "step-12", "tmp-9"));
  EXPECT_EQ(old_checkpoints(run_, {}).bytes, 4 * 7);
  remove_checkpoints(old_checkpoints(run_, {}));
  EXPECT_THAT(there(), UnorderedElementsAre("models"));
}

TEST_F(OldCheckpointsTest, TheSelectedOneStaysUnlessItIsAskedForToo) {
  test::write_text(run_.scores(), R"({"selected_step": 6.0, "test.bleu": 20.5})");
  EXPECT_THAT(names({}), UnorderedElementsAre("step-3", "step-12", "tmp-9"));
  EXPECT_EQ(old_checkpoints(run_, {}).selected_bytes, 7);
  EXPECT_THAT(names({.selected = false}), UnorderedElementsAre("step-3", "step-6", "step-12", "tmp-9"));
}

TEST_F(OldCheckpointsTest, TheNewestStayByTheirStepsNotByTheirNames) {
  EXPECT_THAT(names({.newest = 1}), UnorderedElementsAre("step-3", "step-6", "tmp-9"));
  EXPECT_THAT(names({.newest = 2}), UnorderedElementsAre("step-3", "tmp-9"));
  EXPECT_THAT(names({.newest = 9}), UnorderedElementsAre("tmp-9"));
}

TEST_F(OldCheckpointsTest, ARunWithoutCheckpointsHasNone) {
  fs::remove_all(run_.checkpoints());
  EXPECT_TRUE(old_checkpoints(run_, {}).folders.empty());
}

}  // namespace
}  // namespace tearless::harness::old_checkpoints_test
