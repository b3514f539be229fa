// What the local launcher reserves, measures and learns, with a script in place of the supervisor. How attempts
// survive, stop and are killed with the real one: tests/harness/stops_test.cc and adoption_test.cc.
#include "harness/launch/local_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/sealed_json.h"
#include "tests/harness/launch/declared_devices.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::local_launcher_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

class LocalLauncherTest : public testing::Test {
 protected:
  // A supervisor that writes down its arguments and ends with the code in the file "end". It ignores SIGTERM.
  LocalLauncherTest() {
    test::write_text(folder_ / "tearless",
                     "#!/bin/sh\ntrap '' TERM\necho \"$@\" \"gpu=$CUDA_VISIBLE_DEVICES\" > \"$2/arguments\"\n"
                     "while [ -d \"$2\" ] && [ ! -e \"$2/end\" ]; do sleep 0.01; done\nexit \"$(cat \"$2/end\")\"\n");
    fs::permissions(folder_ / "tearless", fs::perms::owner_all);
    open({.cores = {0, 1}});
  }

  void open(Capacity capacity, bool pin = false, bool ends_attempts = false) {
    std::unique_ptr<DeviceMonitor> monitor;
    if (gpus_ > 0) monitor = std::make_unique<DeclaredDevices>(gpus_);
    if (monitor) capacity.devices = monitor->devices();
    launcher_ = std::make_unique<LocalLauncher>(
        io_, LocalLauncher::Options{.tearless = folder_ / "tearless",
                                    .capacity = std::move(capacity),
                                    .monitor = std::move(monitor),
                                    .pin = pin,
                                    .ends_attempts = ends_attempts,
                                    .on_peak = [this](const std::string& resource_class,
                                                      int64_t bytes) { peaks_[resource_class] = bytes; },
                                    .now = [this] { return now_; }});
    launcher_->on_end = [this](const std::string& id, const Launcher::End& end) {
      ended_[id] = end.fault;
      refusal_at_end_ = why_not({});
    };
  }

  RunDirectory run(const std::string& id) const { return RunDirectory(folder_ / id); }
  void start(const std::string& id, const Needs& needs = {}) {
    make_folders(run(id).root());
    launcher_->start({.id = id,
                      .folder = run(id).root(),
                      .needs = needs,
                      .program = {.path = "/bin/false", .stamp = nlohmann::json::object()}});
  }
  // As its supervisor does. Here that is this process.
  void begin(const std::string& id, const nlohmann::json& stamp = nlohmann::json::object()) const {
    write_start(run(id), run(id).make_attempt(), stamp);
  }
  void measure(const std::string& id, int64_t peak) const {
    test::write_text(run(id).attempt(1) / "measured.json", sealed({{"peak_memory_bytes", peak}}));
  }
  void exits(const std::string& id, int code) const {
    test::write_text(run(id).attempt(1) / "exit.json", sealed({{"code", code}, {"signal", 0}, {"asked", ""}}));
  }
  void await_end(const std::string& id) {
    io_.restart();  // it stops when nothing is left to wait for
    while (!ended_.contains(id)) ASSERT_GT(io_.run_one_for(std::chrono::seconds(60)), 0u) << id << " does not end";
  }
  void end(const std::string& id, int supervisor_code = 0) {
    test::write_text(folder_ / "end", std::to_string(supervisor_code));
    fs::rename(folder_ / "end", run(id).root() / "end");
    await_end(id);
  }
  // "" if there is room.
  std::string why_not(const Needs& needs) const {
    const auto refusal = launcher_->refusal_of(needs);
    return refusal ? refusal->why : "";
  }

  test::TempFolder folder_;
  boost::asio::io_context io_;
  int gpus_ = 0;
  double now_ = 1000;
  std::map<std::string, std::string> ended_;  // run → fault
  std::map<std::string, int64_t> peaks_;
  std::string refusal_at_end_;
  std::unique_ptr<LocalLauncher> launcher_;
};

// Asio keeps what it knows of a descriptor that was closed for the next one, with events that it has not delivered yet.
TEST_F(LocalLauncherTest, DoesNotTakeTheEventOfAClosedSocketForTheEndOfARun) {
  using Socket = boost::asio::local::stream_protocol::socket;
  Socket first(io_), of_first(io_), closed(io_), of_closed(io_);
  boost::asio::local::connect_pair(first, of_first);
  boost::asio::local::connect_pair(closed, of_closed);
  first.async_wait(Socket::wait_read, [&](boost::system::error_code) {
    closed.close();
    start("a");
  });
  closed.async_wait(Socket::wait_read, [](boost::system::error_code) {});
  of_first.send(boost::asio::buffer("x", 1));
  of_closed.send(boost::asio::buffer("x", 1));
  io_.run_for(std::chrono::milliseconds(300));
  EXPECT_THAT(ended_, testing::IsEmpty());
  end("a");
}

TEST_F(LocalLauncherTest, HoldsWhatARunNeedsUntilItHasEnded) {
  start("a");
  start("b");
  EXPECT_EQ(why_not({}), "it needs 1 core, but 0 of 2 are unreserved");
  EXPECT_FALSE(launcher_->refusal_of({})->for_good);
  EXPECT_EQ(launcher_->where("a"), "on the CPU with 1 thread");
  end("a");
  EXPECT_EQ(ended_.at("a"), "");
  EXPECT_EQ(refusal_at_end_, "") << "it is free when the end is reported";
  EXPECT_TRUE(launcher_->refusal_of({.device = "cuda"})->for_good);
  end("b");
}

TEST_F(LocalLauncherTest, WhatCannotBeStartedHoldsNothing) {
  fs::remove(folder_ / "tearless");
  EXPECT_THROW(start("a"), UserError);
  EXPECT_EQ(why_not({.threads = 2}), "");
}

TEST_F(LocalLauncherTest, SaysWhatASupervisorThatMadeNoAttemptSaid) {
  start("a");
  end("a", kNoAttempt);
  EXPECT_THAT(ended_.at("a"), HasSubstr("another program is using " + run("a").root().string()));
  start("b");
  end("b", kNotRecorded);
  EXPECT_THAT(ended_.at("b"), HasSubstr("could not be written into " + run("b").root().string()));
}

TEST_F(LocalLauncherTest, TellsTheSupervisorWhereItsProgramRuns) {
  gpus_ = 1;
  open({.cores = {0, 1}}, /*pin=*/true);
  start("a", {.device = "cuda"});
  start("b");
  end("a");
  end("b");
  EXPECT_THAT(test::read_text(run("a").root() / "arguments"), HasSubstr("gpu=declared-0"));
  EXPECT_THAT(test::read_text(run("b").root() / "arguments"), HasSubstr("\"cores\":[0],\"cuda_device\":\"\""));
  open({.cores = {0, 1}}, /*pin=*/false);
  start("c");
  end("c");
  EXPECT_THAT(test::read_text(run("c").root() / "arguments"), testing::Not(HasSubstr("\"cores\":[0")));
}

TEST_F(LocalLauncherTest, TellsTheSupervisorOfAnAttemptThatWasMadeItsNumber) {
  start("a");
  end("a");
  EXPECT_THAT(test::read_text(run("a").root() / "arguments"),
              testing::Not(testing::AnyOf(HasSubstr("--attempt"), HasSubstr("--ends-with-launcher"))));
  open({.cores = {0, 1}}, /*pin=*/false, /*ends_attempts=*/true);
  make_folders(run("b").root());
  launcher_->start({.id = "b",
                    .folder = run("b").root(),
                    .needs = {},
                    .program = {.path = "/bin/false", .stamp = nlohmann::json::object()},
                    .attempt = 7});
  end("b");
  EXPECT_THAT(test::read_text(run("b").root() / "arguments"), HasSubstr("--attempt 7 --ends-with-launcher"));
}

TEST_F(LocalLauncherTest, WhatDoesNotReactIsKilledWhenItsGraceTimeIsOver) {
  start("a");
  ASSERT_TRUE(test::eventually([&] { return fs::exists(run("a").root() / "arguments"); }));
  launcher_->stop("a", Stop::kOnRequest, 30);
  now_ += 44;
  launcher_->poll();
  io_.poll();
  EXPECT_TRUE(ended_.empty());
  now_ += 2;
  launcher_->poll();
  await_end("a");
  start("b");
  launcher_->stop("b", Stop::kAtOnce, 30);
  await_end("b");
}

// --- memory ----------------------------------------------------------------------------------------------------------

class LocalMemoryTest : public LocalLauncherTest {
 protected:
  LocalMemoryTest() { open({.cores = {0, 1, 2, 3}, .memory_bytes = 64 * kGiB}); }
  static Needs needs(int64_t gib) { return {.resource_class = "a", .memory_bytes = gib * kGiB}; }
};

TEST_F(LocalMemoryTest, ThePeakOfARunThatEndedByItselfIsLearnt) {
  start("a", needs(40));
  EXPECT_THAT(why_not(needs(40)), HasSubstr("it needs 52.0 GiB of memory"));
  begin("a");
  measure("a", 10 * kGiB);
  test::write_text(run("a").scores(), "{}");
  test::write_text(run("a").done(), "{}");
  end("a");
  EXPECT_EQ(peaks_, (std::map<std::string, int64_t>{{"a", 10 * kGiB}}));
  start("b", needs(40));
  EXPECT_THAT(launcher_->where("b"), HasSubstr("10.0 GiB measured"));
  begin("b");
  measure("b", 12 * kGiB);
  exits("b", 1);
  end("b");
  EXPECT_EQ(peaks_.at("a"), 10 * kGiB) << "a crash teaches no peak";
}

TEST_F(LocalMemoryTest, WhatARunUsesNowCountsIfItIsMore) {
  start("a", needs(1));
  begin("a");
  measure("a", 40 * kGiB);
  launcher_->poll();
  start("b", needs(1));
  EXPECT_THAT(launcher_->where("b"), HasSubstr("44.0 GiB reserved"));
  end("a");
  end("b");
}

TEST_F(LocalMemoryTest, RunsLikeOneThatRanOutOfMemoryBesideOthersAreGivenMore) {
  start("a", needs(10));
  start("b", needs(10));
  begin("a");
  exits("a", kExitOutOfMemory);
  end("a");
  start("c", needs(10));
  EXPECT_THAT(launcher_->where("c"), HasSubstr("19.5 GiB, because a run with less ran out of memory"));
  end("b");
  end("c");
}

// --- adoption --------------------------------------------------------------------------------------------------------

TEST_F(LocalLauncherTest, AnAdoptedRunHoldsTheCoresThatItIsBoundTo) {
  open({.cores = {0, 1}}, /*pin=*/true);
  EXPECT_FALSE(launcher_->adopt("a", run("a").root(), {}));
  begin("a", {{"cores", {1}}});
  EXPECT_TRUE(launcher_->adopt("a", run("a").root(), {}));
  start("b");
  EXPECT_NE(why_not({}), "");
  end("b");
  EXPECT_THAT(test::read_text(run("b").root() / "arguments"), HasSubstr("\"cores\":[0]"));
}

TEST_F(LocalLauncherTest, AnAdoptedRunHoldsTheGpuThatItIsOn) {
  gpus_ = 2;
  open({.cores = {0}});
  begin("a", {{"cuda_device", "declared-1"}});
  EXPECT_TRUE(launcher_->adopt("a", run("a").root(), {.device = "cuda"}));
  EXPECT_EQ(launcher_->devices().at(0).runs, 0);
  EXPECT_EQ(launcher_->devices().at(1).runs, 1);
  begin("b", {{"cuda_device", ""}});
  EXPECT_TRUE(launcher_->adopt("b", run("b").root(), {.device = "cuda"}));
  EXPECT_EQ(launcher_->where("b"), "on the CPU with 1 thread") << "whatever was submitted since";
}

TEST_F(LocalLauncherTest, AnAttemptThatHoldsTheLockAndHasNotBegunIsAdopted) {
  make_folders(run("a").root());
  std::optional<LockFile> lock = LockFile::try_acquire(run("a").lock());
  EXPECT_TRUE(launcher_->adopt("a", run("a").root(), {.threads = 2}));
  EXPECT_NE(why_not({}), "");
  lock.reset();
  await_end("a");
  EXPECT_EQ(why_not({.threads = 2}), "");
}

}  // namespace
}  // namespace tearless::harness::local_launcher_test
