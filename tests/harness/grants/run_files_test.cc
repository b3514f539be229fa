// What a machine must see of a run that another one has written.
#include "harness/grants/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/settings.h"
#include "tests/support/paths.h"

namespace tearless::harness::run_files_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() {
    make_folders(run_.checkpoint(3));
    test::write_text(run_.settings(), kSettings);
    test::write_text(run_.model(), "parameters");
    test::write_text(run_.checkpoint(3) / "state.bin", "state");
    test::write_text(run_.scores(), "{}");
    write_done(run_, "done", 3, "", {"scores.json"});
    // Not of the result.
    make_folders(run_.attempt(1));
    test::write_text(run_.attempt(1) / "log.txt", "");
    test::write_text(run_.local(), "");
    test::write_text(run_.resume_check(), "{}");
    test::write_text(run_.root() / "scores.json.tmp17", "{");
    fs::create_symlink("/", run_.root() / "link");
  }

  static constexpr const char* kSettings = "a = 1\n";
  test::TempFolder folder_;
  Workspace workspace_{folder_.path()};
  RunDirectory run_ = workspace_.run(run_id(kSettings));
};

TEST_F(RunFilesTest, AreThoseOfResultAndState) {
  EXPECT_THAT(files_of(run_).bytes, ElementsAre(Pair("checkpoints/step-3/state.bin", 5), Pair("model.safetensors", 10),
                                                Pair("run.toml", 6), Pair("scores.json", 2)));
}

TEST_F(RunFilesTest, AreSeenWithTheLastOne) {
  const RunFiles files = files_of(run_);
  EXPECT_EQ(unseen_file(run_, files), "");
  const std::string done = read_file(run_.done());
  for (const fs::path& file : {run_.model(), run_.scores(), run_.checkpoint(3) / "state.bin", run_.done()}) {
    const std::string text = read_file(file);
    fs::remove(file);
    EXPECT_EQ(unseen_file(run_, files), file);
    test::write_text(file, text.substr(0, 1));
    EXPECT_EQ(unseen_file(run_, files), file) << "a part of it";
    test::write_text(file, text);
    EXPECT_EQ(unseen_file(run_, files), "");
  }
  write_done(run_, "diverged", 3, "", {"scores.json"});
  EXPECT_EQ(unseen_file(run_, files), run_.done()) << "another one's";
  test::write_text(run_.done(), done);
  test::write_text(run_.scores(), "[]");
  EXPECT_EQ(unseen_file(run_, files), run_.scores()) << "as many bytes, and not those that DONE names";
}

TEST_F(RunFilesTest, OfAllRunsOfAChainOfDerivations) {
  const std::string settings = "derived.of = \"" + run_.id() + "\"\n";
  const RunDirectory derived = workspace_.run(run_id(settings));
  make_folders(derived.root());
  test::write_text(derived.settings(), settings);
  write_done(derived, "done", 0, "", {});
  EXPECT_THAT(origins_of(workspace_, "derived.of = \"" + derived.id() + "\"\n"),
              UnorderedElementsAre(Pair(run_.id(), files_of(run_)), Pair(derived.id(), files_of(derived))));
  EXPECT_TRUE(origins_of(workspace_, kSettings).empty());
}

}  // namespace
}  // namespace tearless::harness::run_files_test
