// Processes that a training leaves running: they end with its attempt, whatever they did to get away, and no second
// attempt begins beside one that outlives a killed supervisor.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::left_behind_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Ways to leave a process behind; each writes its pid to the file $LEFT.
struct Way {
  std::string name, script;
};
const Way kWays[] = {
    {"InTheBackground", "sleep 1000 & echo $! > $LEFT"},
    {"InItsOwnSession", "setsid sleep 1000 & echo $! > $LEFT"},
    {"AsADaemon", "setsid bash -c 'setsid sleep 1000 & echo $! > $LEFT'"},  // its parent ends, then the program
    {"DeafToTERM", "setsid bash -c 'trap \"\" TERM; echo $$ > $LEFT; while :; do sleep 0.05; done' > /dev/null 2>&1 &"},
    {"Stopped", "setsid sleep 1000 & kill -STOP $!; echo $! > $LEFT"},
    {"WithChildren", "setsid bash -c 'setsid sleep 1000 & echo $! > $LEFT; wait' &"},
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class LeftBehindTest : public testing::Test {
 protected:
  LeftBehindTest() : run_(folder_ / "run") {
    fs::create_directories(run_.root());
    test::write_text(run_.settings(), "");
    test::write_text(run_.local(), "");
  }

  // `train` is bash; what it leaves behind is there when it continues.
  test::Command supervise(const std::string& train) const {
    const fs::path engine = folder_ / "engine";
    test::write_text(engine, fmt::format("#!/bin/bash\nexport LEFT={}\n{}\n", (folder_ / "left").string(), train));
    fs::permissions(engine, fs::perms::owner_all);
    return {.arguments = {test::program("tearless").string(), "supervise", run_.root().string(), "--engine",
                          engine.string(), "--grace", "1"}};
  }
  static std::string leave(const Way& way) { return way.script + "\nuntil [ -s $LEFT ]; do sleep 0.01; done\n"; }

  pid_t left() const { return std::stoi(test::read_text(folder_ / "left")); }
  std::string log() const { return test::read_text(run_.attempt(1) / "log.txt"); }

  test::TempFolder folder_;
  RunDirectory run_;
};

class EachWay : public LeftBehindTest, public testing::WithParamInterface<Way> {};

TEST_P(EachWay, EndsWithTheProgramWhoseCodeStaysTheAttempts) {
  EXPECT_EQ(test::run(supervise(leave(GetParam()) + "echo its last word; exit 9")).code, 0);
  EXPECT_FALSE(fs::exists(fmt::format("/proc/{}", left()))) << log();
  EXPECT_FALSE(LockFile::is_held(run_.lock()));
  EXPECT_EQ(read_attempt(run_, 1).code, 9);
  EXPECT_EQ(read_attempt(run_, 1).signal, 0);
  EXPECT_THAT(log(), HasSubstr(fmt::format("{} (", left())));
  EXPECT_EQ(last_log_line(run_, 1), "its last word") << "what is said of its failure";
}

INSTANTIATE_TEST_SUITE_P(LeftBehind, EachWay, testing::ValuesIn(kWays), [](const auto& way) { return way.param.name; });

TEST_F(LeftBehindTest, TheEndIsRecordedOnlyWhenNothingRunsAnyMore) {
  const std::string looks =
      "trap '' TERM; echo $$ > $LEFT; while :; do [ -e $1/attempts/1/exit.json ] && "
      "echo early > $LEFT.seen; done";
  EXPECT_EQ(test::run(supervise(leave({"", "setsid bash -c \"" + std::string("$LOOKS") + "\" x $2 &"})
                                    .insert(0, "LOOKS=$(cat <<'X'\n" + looks + "\nX\n)\n")))
                .code,
            0);
  EXPECT_TRUE(fs::exists(run_.attempt(1) / "exit.json"));
  EXPECT_FALSE(fs::exists(folder_ / "left.seen"));
}

TEST_F(LeftBehindTest, WhatIsLeftMayEndInOrder) {
  const std::string polite = "trap 'echo bye > $LEFT.bye; exit 3' TERM; echo $$ > $LEFT; while :; do sleep 0.01; done";
  EXPECT_EQ(test::run(supervise("export POLITE=\"" + polite + "\"\nsetsid bash -c \"$POLITE\" &\n" +
                                "until [ -s $LEFT ]; do sleep 0.01; done"))
                .code,
            0);
  EXPECT_TRUE(fs::exists(folder_ / "left.bye")) << log();
  EXPECT_EQ(read_attempt(run_, 1).code, 0);
}

TEST_F(LeftBehindTest, WhatEndsBeforeTheProgramIsNotNamed) {
  EXPECT_EQ(test::run(supervise("setsid true & setsid bash -c 'sleep 0 & wait' & wait; exit 0")).code, 0);
  EXPECT_EQ(log(), "");
}

TEST_F(LeftBehindTest, ARequestToStopReachesWhatIsLeftToo) {
  test::Background supervisor(supervise(leave(kWays[3]) + "trap '' TERM; echo deaf; while :; do sleep 0.05; done"));
  ASSERT_TRUE(test::eventually([&] { return last_log_line(run_, 1) == "deaf"; }));
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().code, 0);
  EXPECT_FALSE(fs::exists(fmt::format("/proc/{}", left())));
  EXPECT_EQ(read_attempt(run_, 1).signal, SIGKILL);
  EXPECT_EQ(read_attempt(run_, 1).asked, "stop");
}

TEST_F(LeftBehindTest, TemporaryFilesOfAKilledAttemptAreRemovedByTheNextAndNoOthers) {
  fs::create_directories(run_.outputs());
  fs::create_directories(run_.checkpoint(3));
  const std::vector<fs::path> temporary = {run_.root() / "local.toml.tmp12", run_.outputs() / "test.hyp.tmp4711",
                                           run_.checkpoint(3) / "state.bin.tmp1"};
  const std::vector<fs::path> others = {run_.outputs() / "test.hyp", run_.root() / "a.tmp", run_.root() / "a.tmpx1",
                                        run_.root() / ".tmp1", run_.root() / "tmp12"};
  for (const fs::path& file : temporary) test::write_text(file, "x");
  for (const fs::path& file : others) test::write_text(file, "x");
  EXPECT_EQ(test::run(supervise("ls -d $2/*.tmp12 > $LEFT 2> /dev/null; exit 0")).code, 0);
  EXPECT_EQ(test::read_text(folder_ / "left"), "") << "before the program starts";
  for (const fs::path& file : temporary) EXPECT_FALSE(fs::exists(file)) << file;
  for (const fs::path& file : others) EXPECT_TRUE(fs::exists(file)) << file;
}

// With a service.
class LeftBehindRunTest : public ServedRunTest {
 protected:
  // The first attempt leaves `way` behind and hangs; the next ones train. Each notes who was alive when it began: a
  // process that has ended and that its parent has not waited for yet has no command line.
  void write_engine(const Way& way) const {
    const fs::path engine = folder_ / "engine";
    test::write_text(engine, fmt::format("#!/bin/bash\nexport LEFT={}\n[ $1 = train ] || exec {} \"$@\"\n"
                                         "[ -e $LEFT ] || {{ {}\nuntil [ -s $LEFT ]; do sleep 0.01; done\n"
                                         "exec sleep 1000; }}\n"
                                         "[ -z \"$(tr -d '\\0' 2> /dev/null < /proc/$(cat $LEFT)/cmdline)\" ] || "
                                         "echo beside > $LEFT.beside\n"
                                         "exec {} \"$@\"\n",
                                         (folder_ / "left").string(), test::program("fake-engine").string(), way.script,
                                         test::program("fake-engine").string()));
    fs::permissions(engine, fs::perms::owner_all);
  }
  test::Finished with_engine(std::vector<std::string> arguments) const {
    test::Command one = command(std::move(arguments));
    one.environment["TEARLESS_ENGINE"] = (folder_ / "engine").string();
    return test::run(one);
  }
  pid_t left() const { return std::stoi(test::read_text(folder_ / "left")); }
};

TEST_F(LeftBehindRunTest, OfAKilledSupervisorHoldsTheRunAndIsNamedUntilItEnds) {
  test::write_text(folder_ / "grid.toml", "[set]\n\"fake.updates\" = 3\n[axis]\n\"model.kind\" = [\"a\"]\n");
  write_engine(kWays[1]);
  ASSERT_EQ(with_engine({"daemon", "--background"}).code, 0);
  ASSERT_EQ(with_engine({"submit", "grid.toml"}).code, 0);
  ASSERT_TRUE(test::eventually([&] {
    return fs::exists(folder_ / "left") && !test::read_text(folder_ / "left").empty() && runs().size() == 1 &&
           supervisor_of(runs()[0], 1);
  }));
  ::kill(static_cast<pid_t>(supervisor_of(runs()[0], 1)->pid), SIGKILL);
  const std::string waits = fmt::format("waits until process {} (sleep 1000) has ended (kill {})", left(), left());
  EXPECT_TRUE(test::eventually([&] { return ok({"status"}).output.find(waits) != std::string::npos; }))
      << ok({"status"}).output;
  EXPECT_THAT(ok({"explain", "1"}).output, HasSubstr(waits));
  EXPECT_TRUE(test::eventually([&] { return service_log().find(waits) != std::string::npos; })) << service_log();
  kill_service();
  ASSERT_EQ(with_engine({"daemon", "--background"}).code, 0);
  EXPECT_TRUE(test::eventually([&] {
    return ok({"explain", "1"}).output.find(waits) != std::string::npos;
  })) << "another service, which has not seen the supervisor: "
      << ok({"explain", "1"}).output;
  EXPECT_EQ(attempts(), 1);
  ::kill(left(), SIGTERM);
  ok({"wait", "all"});
  EXPECT_EQ(attempts(), 2);
  EXPECT_FALSE(fs::exists(folder_ / "left.beside"));
  EXPECT_TRUE(fs::exists(runs()[0].done()));
}

TEST_F(LeftBehindRunTest, EndsWithAnAttemptThatIsKilledAtOnce) {
  test::write_text(folder_ / "grid.toml", "[set]\n\"fake.updates\" = 3\n[axis]\n\"model.kind\" = [\"a\"]\n");
  write_engine(kWays[3]);
  ASSERT_EQ(with_engine({"daemon", "--background"}).code, 0);
  ASSERT_EQ(with_engine({"submit", "grid.toml"}).code, 0);
  ASSERT_TRUE(test::eventually([&] {
    return fs::exists(folder_ / "left") && !test::read_text(folder_ / "left").empty() && runs().size() == 1 &&
           supervisor_of(runs()[0], 1);
  }));
  fs::rename(folder_ / "results", folder_ / "moved");  // the service kills what works there
  EXPECT_TRUE(test::eventually([&] { return ::kill(left(), 0) != 0; }));
}

TEST_F(LeftBehindRunTest, AMonitorThatOutlivesDoneDoesNotKeepTheRunFromBeingDone) {
  test::write_text(folder_ / "grid.toml", "[set]\n\"fake.updates\" = 3\n[axis]\n\"model.kind\" = [\"a\"]\n");
  test::write_text(folder_ / "engine", fmt::format("#!/bin/bash\nif [ $1 = train ]; then setsid sleep 1000 > /dev/null "
                                                   "2>&1 & fi\nexec {} \"$@\"\n",
                                                   test::program("fake-engine").string()));
  fs::permissions(folder_ / "engine", fs::perms::owner_all);
  EXPECT_EQ(with_engine({"run", "grid.toml"}).code, 0);
  EXPECT_THAT(ok({"explain", "1"}).output, testing::AllOf(HasSubstr("\n  done: "), HasSubstr("attempt 1: done")));
  EXPECT_THAT(ok({"log", "1"}).output, HasSubstr("left running process"));
  expect_nothing_alive();
}

}  // namespace
}  // namespace tearless::harness::left_behind_test
