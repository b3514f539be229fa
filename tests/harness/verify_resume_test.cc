// `tearless verify-resume` with real processes: what it says of a run that resumes as it should and of one that does
// not, where that is shown, and what is left when it is interrupted or killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "base/sealed_json.h"
#include "harness/store/store.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::verify_resume_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class VerifyResumeTest : public ServedRunTest {
 protected:
  // The seeds below are for ids without the name of a program.
  VerifyResumeTest() {
    ::setenv("FAKE_PROGRAM", "tearless-engine", 1);
    one_run("succeed");
  }
  ~VerifyResumeTest() override { ::unsetenv("FAKE_PROGRAM"); }

  void one_run(const std::string& behaviour, int updates = 12) const {
    test::write_text(folder_ / "grid.toml", "[set]\n\"fake.updates\" = " + std::to_string(updates) +
                                                "\n\"fake.behaviour\" = \"" + behaviour +
                                                "\"\n[axis]\n\"model.kind\" = [\"a\"]\n");
  }
  // The updates that this seed draws are at most 3, 6 and 9: the n-th attempt of the fake program waits after update
  // 3n, so that no stop comes too late.
  test::Command verify_resume(std::vector<std::string> options = {}) const {
    std::vector<std::string> arguments = {"verify-resume", "last", "--seed", kEarlyStops};
    arguments.insert(arguments.end(), options.begin(), options.end());
    test::Command one = command(std::move(arguments));
    one.environment["FAKE_STOPS"] = "3";
    return one;
  }
  // Its first stop is after update 3, where the program waits for it: it never ends.
  test::Command endless_verify_resume() const {
    test::Command one = command({"verify-resume", "last", "--stops", "1", "--seed", kLateStop});
    one.environment["FAKE_STOPS"] = "1";
    return one;
  }
  // The run's result has other metrics.
  void leave_metrics(const RunDirectory& run, const std::string& metrics) const {
    test::write_text(run.metrics(), metrics);
    write_done(run, "done", 12, "max_updates", {"scores.json", "metrics.jsonl"});
    ok({"rebuild"});
  }
  json stamp() const { return json::parse(ok({"--json", "runs"}).output).at(0).at("resume"); }
  fs::path scratch() const { return folder_ / "results/verifying"; }
  std::vector<RunDirectory> trainings() const {
    std::vector<RunDirectory> all;
    for (const std::string& run : folders_in(scratch())) all.emplace_back(scratch() / run);
    return all;
  }
  bool is_training() const {
    for (const RunDirectory& training : trainings()) {
      if (read_metrics(training, 0).lines.size() >= 3 && LockFile::is_held(training.lock())) return true;
    }
    return false;
  }

  static constexpr const char* kEarlyStops = "18";
  static constexpr const char* kLateStop = "1";
};

TEST_F(VerifyResumeTest, ARunThatResumesAsItShouldIsFoundEqualAndThatIsShown) {
  ok({"run", "grid.toml"});
  const std::map<std::string, std::string> before = results();
  const std::string table = ok({"table", "grid.toml"}).output;
  const test::Finished verified = test::run(verify_resume());
  ASSERT_EQ(verified.code, 0) << verified.output << verified.errors;
  EXPECT_THAT(verified.output, testing::ContainsRegex("equal after 3 stops \\(SIGTERM at update [0-9]+, SIGKILL at "
                                                      "[0-9]+, SIGTERM at [0-9]+; seed [0-9]+\\)"));
  EXPECT_THAT(verified.output, HasSubstr("1 run: 1 equal, 0 different, 0 not verified\n"));
  EXPECT_EQ(results(), before);
  EXPECT_FALSE(fs::exists(scratch()));
  ok({"verify"});

  for (const bool rebuilt : {false, true}) {
    if (rebuilt) {
      fs::remove(folder_ / "results/tearless.db");
      ok({"rebuild"});
    }
    EXPECT_EQ(stamp().at("outcome"), "equal");
    const json stops = stamp().at("stops");
    ASSERT_EQ(stops.size(), 3u);
    EXPECT_EQ(stops[1].at("signal"), "SIGKILL");
    EXPECT_EQ(stops[1].at("resumed_from"), stops[0].at("resumed_from")) << "a killed attempt leaves no checkpoint";
    EXPECT_GT(stops[2].at("resumed_from"), stops[1].at("update"))
        << "the metrics of the killed attempt were not its own";
    EXPECT_THAT(ok({"explain", runs().at(0).id()}).output, HasSubstr("stopped and resumed: equal after 3 stops"));
    EXPECT_THAT(ok({"runs", "--csv"}).output, HasSubstr(",12,12,equal,"));
    EXPECT_EQ(ok({"table", "grid.toml"}).output, table);
    EXPECT_THAT(ok({"table", "grid.toml", "--resume-note"}).output,
                HasSubstr("Resume verified: 1 of 1 run (byte-equal after 3 stops each)"));
  }
  ok({"delete", "--yes", "all"});
  EXPECT_THAT(runs(), IsEmpty());
}

TEST_F(VerifyResumeTest, ARunThatDependsOnItsStopsIsNamedByEveryTable) {
  one_run("resume_differs");
  ok({"run", "grid.toml"});
  const std::string id = runs().at(0).id();
  EXPECT_THAT(ok({"table", "grid.toml", "--resume-note"}).output, HasSubstr("Resume verified: 0 of 1 run.\n"));
  const test::Finished verified = test::run(verify_resume());
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.output, AllOf(HasSubstr("DIFFERENT after 3 stops"), HasSubstr("in metrics.jsonl from line "),
                                     HasSubstr("1 run: 0 equal, 1 different, 0 not verified\n")));
  EXPECT_THAT(verified.output, HasSubstr("stays in results/verifying until the next verify-resume"));
  EXPECT_THAT(trainings(), Not(IsEmpty())) << "to look at";
  EXPECT_EQ(stamp().at("outcome"), "different");
  EXPECT_THAT(ok({"table", "grid.toml"}).output,
              HasSubstr("NOT the same result after stops: run " + id + ". To see how: tearless explain " + id));
  EXPECT_THAT(ok({"explain", id}).output, HasSubstr("stopped and resumed: DIFFERENT after 3 stops"));
  ok({"verify"});
  ok({"rebuild"});
  EXPECT_EQ(stamp().at("outcome"), "different");
}

TEST_F(VerifyResumeTest, ARunOfAGpuIsTrainedAgainOnThatGpu) {
  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml",
                   std::regex_replace(grid, std::regex("\\[set\\]"), "[set]\n\"fake.device\" = \"cuda\""));
  test::write_text(folder_ / "gpus.txt", "gpu GPU-0 1000000 0 Fake GPU\n");
  const test::Finished trained = test::run(with_gpus(command({"run", "grid.toml"})));
  ASSERT_EQ(trained.code, 0) << trained.output << trained.errors;
  test::Background verifying(with_gpus(endless_verify_resume()));
  ASSERT_TRUE(test::eventually([&] { return is_training(); }));
  const RunDirectory training = trainings().at(0);
  const std::optional<ProcessName> supervisor = supervisor_of(training, training.newest_attempt());
  ASSERT_TRUE(supervisor);
  const std::string environment = test::read_text("/proc/" + std::to_string(supervisor->pid) + "/environ");
  EXPECT_THAT('\0' + environment, HasSubstr(std::string("\0CUDA_VISIBLE_DEVICES=GPU-0\0", 28)));
  EXPECT_EQ(read_attempt(training, training.newest_attempt()).device, "Fake GPU");
  verifying.signal(SIGINT);
  EXPECT_EQ(verifying.wait().code, 130);
}

TEST_F(VerifyResumeTest, MistakesAreRefusedBeforeAnythingIsTrained) {
  EXPECT_THAT(tearless({"verify-resume", "last"}).errors, HasSubstr("there is no database"));
  queue("grid.toml");
  EXPECT_THAT(tearless({"verify-resume", "last"}).errors,
              HasSubstr("no run of a sweep that is meant by \"last\" has a result"));
  free_the_daemon();
  ok({"run", "grid.toml"});
  const std::map<std::vector<std::string>, std::string> sentences = {
      {{"--engine", "other"}, "omit --engine"}, {{"--stops", "0"}, "--stops"}, {{"--seed", "x"}, "--seed"}};
  for (const auto& [options, sentence] : sentences) {
    const test::Finished refused = test::run(verify_resume(options));
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_THAT(refused.errors, HasSubstr(sentence));
  }
  EXPECT_TRUE(stamp().is_null());
  fs::remove_all(folder_ / "results/programs");
  const test::Finished without = test::run(verify_resume());
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.output, HasSubstr("is gone; submit the grid again: tearless submit "));
}

TEST_F(VerifyResumeTest, RemovesNothingThatIsElsewhereBehindALink) {
  ok({"run", "grid.toml"});
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere / "mine");
  fs::create_directory_symlink(elsewhere, scratch());
  const test::Finished refused = test::run(verify_resume());
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("results/verifying is a symbolic link out of the workspace"));
  EXPECT_THAT(folders_in(elsewhere), testing::ElementsAre("mine"));
}

TEST_F(VerifyResumeTest, ARunThatCannotBeStoppedIsNotVerified) {
  one_run("succeed", /*updates=*/1);
  ok({"run", "grid.toml"});
  const test::Finished verified = test::run(verify_resume());
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.output, HasSubstr("not verified: its metrics name no update before its last"));
  EXPECT_TRUE(stamp().is_null());
  EXPECT_FALSE(fs::exists(scratch()));
}

TEST_F(VerifyResumeTest, ARunThatDivergedIsVerifiedTooAlsoBesideAService) {
  one_run("diverge");
  ok({"run", "grid.toml"});
  ok({"daemon", "--background"});
  ASSERT_TRUE(LockFile::is_held(folder_ / "results/tearless.lock"));
  test::Command verification = command({"verify-resume", "last", "--stops", "1", "--seed", "1"});
  verification.environment["FAKE_STOPS"] = "1";
  const test::Finished verified = test::run(verification);
  EXPECT_EQ(verified.code, 0) << verified.errors;
  EXPECT_THAT(verified.output, HasSubstr("  equal after 1 stop (SIGTERM at update 3; seed 1)\n"));
  EXPECT_EQ(stamp().at("outcome"), "equal");
  ok({"verify"});
}

// Its metrics name updates that the training, as it is now, does not come to.
TEST_F(VerifyResumeTest, ATrainingThatEndsBeforeItsFirstStopIsNotVerified) {
  ok({"run", "grid.toml"});
  const RunDirectory run = runs().at(0);
  std::string metrics = test::read_text(run.metrics());
  for (int step = 13; step <= 10'000; ++step) {
    metrics += json{{"step", step}, {"name", "train.loss"}, {"value", 1}}.dump() + "\n";
  }
  leave_metrics(run, metrics);
  const test::Finished verified = tearless({"verify-resume", "last", "--stops", "1", "--seed", kEarlyStops});
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.output, HasSubstr("not verified: it ended before the first stop\n")) << verified.errors;
  EXPECT_TRUE(stamp().is_null());
}

TEST_F(VerifyResumeTest, OfARunThatIsInUseOrDeletedMeanwhileNothingIsRecorded) {
  ok({"run", "grid.toml"});
  const RunDirectory run = runs().at(0);
  {
    const LockFile used = LockFile::try_acquire(run.lock()).value();
    const test::Finished verified = test::run(verify_resume());
    EXPECT_EQ(verified.code, 1);
    EXPECT_THAT(verified.output, HasSubstr("not verified: its folder is in use by another process"));
    EXPECT_TRUE(stamp().is_null());
  }
  fs::remove_all(scratch());
  test::Background verification(verify_resume());
  ASSERT_TRUE(test::eventually([&] { return fs::exists(scratch() / run.id() / "attempts"); }));
  fs::rename(run.root(), folder_ / "moved");
  const test::Finished verified = verification.wait();
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.output, HasSubstr("not verified: cannot open the lock")) << verified.errors;
  fs::rename(folder_ / "moved", run.root());
  EXPECT_TRUE(stamp().is_null());
}

// Another processor may add in another order: the run's own numbers do not count then.
TEST_F(VerifyResumeTest, ARunThatDiffersAndWasTrainedElsewhereIsNotVerified) {
  ok({"run", "grid.toml"});
  const RunDirectory run = runs().at(0);
  std::string metrics = test::read_text(run.metrics());
  metrics.replace(metrics.find("\"value\":1"), 9, "\"value\":2");
  leave_metrics(run, metrics);
  const json start = *read_sealed(run.attempt(1) / "start.json");
  for (const char* origin : {"processor", "version"}) {
    json elsewhere = start;
    elsewhere[origin] = "another";
    write_before_exit(run, "start.json", sealed(elsewhere));
    ok({"rebuild"});
    const test::Finished verified = test::run(verify_resume());
    EXPECT_EQ(verified.code, 1) << origin;
    EXPECT_THAT(verified.output, HasSubstr("not verified: it differs, but it was trained by another build or on an"));
    EXPECT_TRUE(stamp().is_null()) << origin;
  }
  write_before_exit(run, "start.json", sealed(start));
  ok({"rebuild"});
  EXPECT_EQ(test::run(verify_resume()).code, 1);
  EXPECT_EQ(stamp().at("outcome"), "different") << "the same processor, other numbers";
}

TEST_F(VerifyResumeTest, CtrlCLeavesNoProcessAndNoFile) {
  ok({"run", "grid.toml"});
  test::Background interrupted(endless_verify_resume());
  ASSERT_TRUE(test::eventually([&] { return is_training(); }));
  interrupted.signal(SIGINT);
  const test::Finished finished = interrupted.wait();
  EXPECT_EQ(finished.code, 130) << finished.output << finished.errors;
  EXPECT_FALSE(fs::exists(scratch()));
  EXPECT_TRUE(stamp().is_null());
  ok({"verify"});
}

TEST_F(VerifyResumeTest, KilledItLeavesNoProcessAndTheNextOneRemovesItsFolder) {
  ok({"run", "grid.toml"});
  const std::map<std::string, std::string> before = results();
  {
    test::Background killed(endless_verify_resume());
    ASSERT_TRUE(test::eventually([&] { return is_training(); }));
    EXPECT_THAT(test::run(verify_resume()).errors, HasSubstr("another process uses results/verifying"));
    killed.signal(SIGKILL);
    killed.wait();
  }
  const std::vector<RunDirectory> left = trainings();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(left.at(0).lock()); })) << "its program is alive";
  EXPECT_EQ(results(), before);
  ok({"verify"});
  EXPECT_EQ(test::run(verify_resume()).code, 0);
  EXPECT_FALSE(fs::exists(scratch()));
  EXPECT_EQ(stamp().at("outcome"), "equal");
}

TEST_F(VerifyResumeTest, ADamagedOutcomeIsNeverPrintedAndDoesNotKeepARunFromBeingRebuilt) {
  ok({"run", "grid.toml"});
  ASSERT_EQ(test::run(verify_resume()).code, 0);
  const fs::path file = runs().at(0).resume_check();
  std::string text = test::read_text(file);
  text.replace(text.find("\"equal\""), 7, "\"EQUAL\"");
  test::write_text(file, text);
  const test::Finished verify = tearless({"verify"});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.output, HasSubstr("resume.json is damaged"));
  for (const std::vector<std::string>& look :
       std::vector<std::vector<std::string>>{{"table", "grid.toml"}, {"runs"}, {"explain", runs().at(0).id()}}) {
    const test::Finished refused = tearless(look);
    EXPECT_EQ(refused.code, 2) << look.front();
    EXPECT_THAT(refused.errors, HasSubstr("resume.json is damaged; delete it, and verify the run again"));
  }
  ok({"rebuild"});
  fs::remove(file);
  EXPECT_THAT(ok({"table", "grid.toml"}).output, Not(HasSubstr("(0/1)")));
  ok({"verify"});
}

TEST_F(VerifyResumeTest, ARunWhoseDataHaveChangedIsNotVerifiedUntilTheyAreBack) {
  test::write_text(folder_ / "train.en", "the old bytes");
  std::string grid = test::read_text(folder_ / "grid.toml");
  grid.insert(grid.find("[axis]"), "\"data.train\" = \"train.en\"\n");
  test::write_text(folder_ / "grid.toml", grid);
  ok({"run", "grid.toml"});
  test::write_text(folder_ / "train.en", "new bytes");
  const test::Finished refused = test::run(verify_resume());
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("train.en is not the file that this run was planned with"));
  test::write_text(folder_ / "train.en", "the old bytes");
  const test::Finished verified = test::run(verify_resume());
  EXPECT_EQ(verified.code, 0) << verified.output << verified.errors;
  EXPECT_THAT(verified.output, HasSubstr("1 run: 1 equal"));
}

class VerifyTodayTest : public VerifyResumeTest {
 protected:
  test::Finished today(const std::map<std::string, std::string>& variables = {},
                       std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"verify-resume", "last", "--today"});
    test::Command one = command(std::move(more));
    one.environment.insert(variables.begin(), variables.end());
    return test::run(one);
  }
  // A training program that reads questions otherwise: of each, what `sed` makes of it.
  std::string program_with(const std::string& sed) const {
    const fs::path program = folder_ / "other-engine";
    const std::string engine = test::program("fake-engine").string();
    test::write_text(program, "#!/bin/sh\n[ $1 = check ] || exec " + engine + " \"$@\"\nsed '" + sed + "' | " + engine +
                                  " \"$@\"\n");
    fs::permissions(program, fs::perms::owner_all);
    return program.string();
  }
  void expect_untouched(const std::map<std::string, std::string>& before) const {
    EXPECT_EQ(results(), before);
    EXPECT_TRUE(stamp().is_null());
    for (const RunDirectory& run : runs()) EXPECT_FALSE(fs::exists(run.resume_check()));
    ok({"verify"});
  }
};

TEST_F(VerifyTodayTest, TheSameProgramLeavesTheSameBytesWithoutTheCopyThatTheSweepHas) {
  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid + "[derived.wide]\nbeam = 8\n");
  ok({"run", "grid.toml"});
  const std::string table = ok({"table", "last"}).output;
  fs::remove_all(folder_ / "results/programs");
  const test::Finished same = today();
  EXPECT_EQ(same.code, 0) << same.output << same.errors;
  EXPECT_THAT(same.output, AllOf(Not(HasSubstr("trained by")), HasSubstr(": the same bytes\n"),
                                 HasSubstr("2 runs: 2 equal, 0 different, 0 not verified\n")));
  EXPECT_FALSE(fs::exists(scratch()));
  EXPECT_EQ(ok({"table", "last"}).output, table);
  EXPECT_TRUE(stamp().is_null());
}

TEST_F(VerifyTodayTest, WhatAProgramThatComputesOtherwiseMovesIsListedAndNotRecorded) {
  ok({"run", "grid.toml"});
  const std::map<std::string, std::string> before = results();
  const double was = json::parse(test::read_text(runs().at(0).scores())).at("test.score");
  const test::Finished moved = today({{"FAKE_EXTRA", "0.5"}});
  EXPECT_EQ(moved.code, 1);
  EXPECT_THAT(
      moved.output,
      AllOf(
          testing::ContainsRegex("  trained by version 1, file [0-9a-f]+ on cpu.*; today by version 1, file [0-9a-f]"),
          HasSubstr("  moved: metrics.jsonl from line 13, scores.json from line 2\n"),
          testing::ContainsRegex("  score +was +is today +difference\n  test.score +2[0-9.]+ +2[0-9.]+ +\\+0.5\n"),
          Not(HasSubstr("  updates")), HasSubstr("1 run: 0 equal, 1 different, 0 not verified\n")));
  EXPECT_FALSE(trainings().empty()) << "to look at";
  expect_untouched(before);
  const json answer = json::parse(today({{"FAKE_EXTRA", "0.5"}}, {"--json"}).output).at(0);
  EXPECT_EQ(answer.at("outcome"), "different");
  EXPECT_EQ(answer.at("today").at("files"), json({"metrics.jsonl from line 13", "scores.json from line 2"}));
  EXPECT_EQ(answer.at("today").at("scores"), json({{"test.score", {was, was + 0.5}}}));
}

TEST_F(VerifyTodayTest, AProgramThatTakesTheRunForAnotherOrRefusesItTrainsNothing) {
  test::write_text(folder_ / "train.en", "the bytes");
  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid.insert(grid.find("[axis]"), "\"data.train\" = \"train.en\"\n"));
  ok({"run", "grid.toml"});
  const std::map<std::string, std::string> before = results();
  const auto expect = [&](const test::Finished& refused, const std::string& sentence) {
    EXPECT_EQ(refused.code, 1) << sentence;
    EXPECT_THAT(refused.output, AllOf(HasSubstr("  not verified: " + sentence),
                                      HasSubstr("1 run: 0 equal, 0 different, 1 not verified")));
    EXPECT_FALSE(fs::exists(scratch())) << "nothing was trained";
  };
  expect(today({{"FAKE_PROGRAM", "another"}}), "it is a run of tearless-engine, and ");
  expect(today({}, {"--engine", program_with("s/\"fake.updates\":12/\"fake.updates\":13/")}),
         "the training program reads its settings otherwise today: they are run ");
  expect(today({}, {"--engine", program_with("s/model.kind/shape.kind/g")}),
         "the training program refuses its settings today: unknown setting \"shape.kind\"");
  fs::rename(folder_ / "train.en", folder_ / "gone");
  expect(today(), (folder_ / "train.en").string() + " is missing");
  test::write_text(folder_ / "train.en", "other bytes");
  expect(today(), "the training program reads its settings otherwise today");
  fs::rename(folder_ / "gone", folder_ / "train.en");
  EXPECT_EQ(today({}, {"--engine", program_with("s/x/x/")}).code, 0);
  expect_untouched(before);
  EXPECT_EQ(today({}, {"--stops", "2"}).code, 2);
  EXPECT_EQ(today({}, {"--seed", "2"}).code, 2);
}

}  // namespace
}  // namespace tearless::harness::verify_resume_test
