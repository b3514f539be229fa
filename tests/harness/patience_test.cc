// The order of runs that do not all fit: a large one lets smaller ones pass for ten minutes and no longer. The clock of
// the service is put forward; each run ends when the test releases it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::patience_test {
namespace {

class PatienceTest : public ServedRunTest {
 protected:
  PatienceTest() {
    const std::string folder = folder_.path().string();
    test::write_text(folder_ / "engine", "#!/bin/sh\nFAKE=" + test::program("fake-engine").string() +
                                             "\n[ \"$1\" = train ] || exec $FAKE \"$@\"\n"
                                             "name=$(sed -n 's/^model.name = \"\\(.*\\)\"/\\1/p' \"$2/run.toml\")\n"
                                             ": > " +
                                             folder + "/begun.$name\nwhile [ ! -e " + folder +
                                             "/released.$name ]; do sleep 0.02; done\nexec $FAKE train \"$2\"\n");
    fs::permissions(folder_ / "engine", fs::perms::owner_all);
  }

  // With a GPU on which two small runs fit, or a large one.
  void start_service() const {
    put_clock_forward(0);
    test::write_text(folder_ / "gpus.txt", fmt::format("gpu GPU-0 {} 0 Fake GPU\n", int64_t{24} << 30));
    test::Command daemon = with_gpus(command({"daemon", "--background", "--runs-per-gpu", "2"}));
    daemon.environment["LD_PRELOAD"] = test::program("libfake-clock.so").string();
    daemon.environment["TEARLESS_FAKE_CLOCK"] = clock().string();
    ASSERT_EQ(test::run(daemon).code, 0);
  }
  void submit(const std::vector<std::string>& names, const std::string& memory, int priority) const {
    const std::string grid = names.front() + ".toml";
    test::write_text(folder_ / grid,
                     fmt::format("[set]\n\"fake.device\" = \"cuda\"\n[axis]\n\"model.name\" = [\"{}\"]\n",
                                 fmt::join(names, "\", \"")));
    ok({"submit", grid, "--engine", (folder_ / "engine").string(), "--memory", memory, "--priority",
        std::to_string(priority)});
  }

  fs::path clock() const { return folder_ / "clock"; }
  void put_clock_forward(int seconds) const {
    test::write_text(folder_ / "clock.new", std::to_string(seconds));
    fs::rename(folder_ / "clock.new", clock());
  }
  void release(const std::string& name) const { test::write_text(folder_ / ("released." + name), ""); }
  // The names of those that have begun, once there are as many as that.
  std::string begun(size_t count) const {
    std::set<std::string> names;
    test::eventually([&] {
      for (const auto& entry : fs::directory_iterator(folder_.path())) {
        const std::string name = entry.path().filename();
        if (name.starts_with("begun.")) names.insert(name.substr(6));
      }
      return names.size() >= count;
    });
    return fmt::format("{}", fmt::join(names, " "));
  }
};

TEST_F(PatienceTest, ARunThatDoesNotFitIsSkippedForTenMinutesAndThenNothingStartsBeforeIt) {
  const char* sanitizers = std::getenv("TEARLESS_SANITIZED");
  if (sanitizers && *sanitizers) GTEST_SKIP() << "the sanitizers' library must be the first of a program, not ours";
  start_service();
  submit({"s1", "s2", "s3", "s4", "s5", "s6"}, "10GiB", 1);
  EXPECT_EQ(begun(2), "s1 s2");
  submit({"large1"}, "20GiB", 2);
  submit({"large2"}, "20GiB", 0);
  submit({"last"}, "10GiB", -1);
  release("s1");
  EXPECT_EQ(begun(3), "s1 s2 s3");
  put_clock_forward(500);
  release("s2");
  EXPECT_EQ(begun(4), "s1 s2 s3 s4");
  put_clock_forward(600);
  release("s3");
  release("s4");
  EXPECT_EQ(begun(5), "large1 s1 s2 s3 s4");

  // The ten minutes of the next large run begin when it is skipped itself.
  release("large1");
  EXPECT_EQ(begun(7), "large1 s1 s2 s3 s4 s5 s6");
  release("s5");
  EXPECT_EQ(begun(8), "large1 last s1 s2 s3 s4 s5 s6");
  for (const char* name : {"s6", "last", "large2"}) release(name);
  ok({"wait", "all"});
}

}  // namespace
}  // namespace tearless::harness::patience_test
