// Which sweeps and runs the words of a command line mean.
#include "harness/selection/selectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::selectors_test {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Selectors : public testing::Test {
 protected:
  Selectors() : store_(Store::open_writer(Workspace(folder_.path()))) {
    store_->submit(sweep("norm-11111111", "/g/norm.toml", "2026-01-01T00:00:00Z", {"aa01", "aa02", "ab03", "ac04"}));
    store_->submit(sweep("init-22222222", "/g/init.toml", "2026-01-02T00:00:00Z", {"bb01", "aa02"}));
    store_->move("ab03", RunState::kQueued, RunState::kFailed);
  }
  static Sweep sweep(const std::string& id, const std::string& file, const std::string& at,
                     const std::vector<std::string>& runs) {
    Sweep sweep{.id = id, .title = "", .grid_file = file, .submitted_at = at, .runs = {}, .program = "", .reason = ""};
    for (size_t i = 0; i < runs.size(); ++i) {
      sweep.runs.push_back({.id = runs[i],
                            .settings = "x",
                            .coordinates = {{"norm", i < 2 ? "layer" : "scale"}},
                            .seed = static_cast<int64_t>(1 + i % 2)});
    }
    return sweep;
  }
  std::vector<std::string> runs(const std::vector<std::string>& words) { return select(*store_, words).runs; }
  std::vector<std::string> sweeps(const std::vector<std::string>& words) { return select(*store_, words).sweeps; }
  std::string refusal(const std::vector<std::string>& words) {
    return error_of([&] { select(*store_, words); });
  }

  test::TempFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(Selectors, SweepsByIdBeginningGridFileLastAndAll) {
  EXPECT_THAT(sweeps({"norm-11111111"}), ElementsAre("norm-11111111"));
  EXPECT_THAT(sweeps({"norm"}), ElementsAre("norm-11111111"));
  EXPECT_THAT(sweeps({"/g/../g/norm.toml"}), ElementsAre("norm-11111111"));
  EXPECT_THAT(sweeps({"last"}), ElementsAre("init-22222222"));
  EXPECT_THAT(sweeps({"all"}), ElementsAre("init-22222222", "norm-11111111"));
}

TEST_F(Selectors, RunsByTheBeginningOfTheirIds) {
  EXPECT_THAT(runs({"ab", "aa01"}), ElementsAre("ab03", "aa01"));
  EXPECT_THAT(refusal({"aa"}), HasSubstr("could be any of 2 runs: aa01, aa02"));
}

TEST_F(Selectors, FailedIsAlsoARunWhoseLastAttemptCrashedAndThatWaits) {
  EXPECT_THAT(runs({"failed", "norm"}), ElementsAre("ab03"));
  for (const auto& [run, failure] : {std::pair("aa01", FailureClass::kCrashed), {"ac04", FailureClass::kStopped}}) {
    store_->move(run, RunState::kQueued, RunState::kRunning);
    store_->move(run, RunState::kRunning, RunState::kQueued, failure, "why");
  }
  store_->set_sweep_state("norm-11111111", SweepState::kPaused, "3 runs crashed alike");
  EXPECT_THAT(runs({"failed", "norm"}), ElementsAre("aa01", "ab03"));
  EXPECT_THAT(runs({"queued", "norm"}), ElementsAre("aa01", "aa02", "ac04"));
}

TEST_F(Selectors, RunsByPlaceStateAndAxisOfTheNamedSweepOrTheNewest) {
  EXPECT_THAT(runs({"1"}), ElementsAre("bb01"));
  EXPECT_THAT(runs({"norm", "2-3"}), ElementsAre("aa02", "ab03"));
  EXPECT_THAT(runs({"norm", "failed"}), ElementsAre("ab03"));
  EXPECT_THAT(runs({"norm", "norm=scale"}), ElementsAre("ab03", "ac04"));
  EXPECT_THAT(runs({"norm", "norm=scale", "seed=2"}), ElementsAre("ac04"));
  EXPECT_THAT(runs({"norm", "1", "4"}), ElementsAre("aa01", "ac04"));
  EXPECT_THAT(runs({"all", "seed=2"}), ElementsAre("aa02", "ac04"));
  EXPECT_THAT(sweeps({"norm", "1"}), IsEmpty());
}

TEST_F(Selectors, WordsThatNameNothingAreRefused) {
  EXPECT_THAT(refusal({"zz"}), HasSubstr("\"zz\" is no sweep, run, state, place or axis=label"));
  EXPECT_THAT(refusal({"norm", "colour=red"}), HasSubstr("no run of"));
  EXPECT_THAT(refusal({"norm", "9"}), HasSubstr("no run of"));
  EXPECT_THAT(refusal({"7-3"}), HasSubstr("its end comes before its beginning"));
  EXPECT_THAT(refusal({"other.toml"}), HasSubstr("was not submitted in this workspace"));
}

TEST_F(Selectors, FiltersThatAdmitNoRunSelectNothing) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"norm", "done"}, {"norm", "1", "norm=scale"}, {"all", "running"}}) {
    EXPECT_TRUE(select(*store_, words).is_empty()) << testing::PrintToString(words);
  }
}

TEST_F(Selectors, InAWorkspaceWithoutSweepsAWordThatMeansOneIsRefusedAndARunIsFound) {
  store_->forget("init-22222222", {"bb01"});
  store_->forget("norm-11111111", {"aa02", "ab03", "ac04"});
  for (const char* word : {"last", "queued", "1", "norm=layer"}) {
    EXPECT_THAT(refusal({word}), HasSubstr("this workspace has no sweep")) << word;
  }
  EXPECT_TRUE(select(*store_, {"all"}).is_empty());
  EXPECT_THAT(refusal({"norm.toml"}), HasSubstr("was not submitted in this workspace"));
  EXPECT_THAT(runs({"aa"}), ElementsAre("aa01"));
}

}  // namespace
}  // namespace tearless::harness::selectors_test
