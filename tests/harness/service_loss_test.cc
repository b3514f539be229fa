// What a service, or who watches it, may lose while it works: the reader of its output, its database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::service_loss_test {
namespace {

using testing::HasSubstr;

class ServiceLossTest : public ServedRunTest {
 protected:
  ServiceLossTest() { write_grid("\"succeed\"", 60); }

  // A command that begins when nobody reads its output any more. Its exit code is in the file `code`.
  test::Command without_reader(const std::string& arguments) const {
    test::Command shell = command({});
    shell.arguments = {"/bin/sh", "-c",
                       "{ until [ -e left ]; do sleep 0.01; done; \"$0\" " + arguments +
                           " 2>&1; echo $? >code; } | { exec <&-; : >left; }",
                       test::program("tearless").string()};
    return shell;
  }
};

TEST_F(ServiceLossTest, ARunWhoseReaderHasLeftReplacesAKilledServiceAndEndsWithItsSweep) {
  test::Background run(without_reader("run grid.toml --jobs 1"));
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  kill_service();
  run.wait();
  EXPECT_EQ(results(), undisturbed());
  EXPECT_EQ(test::read_text(folder_ / "code"), "2\n") << "not all was printed";
}

TEST_F(ServiceLossTest, ADaemonWhoseReaderHasLeftTrainsAllTheSame) {
  test::Background daemon(without_reader("daemon --jobs 4"));
  ASSERT_TRUE(test::eventually([&] {
    return tearless({"status"}).output.find("daemon works here") != std::string::npos || fs::exists(folder_ / "code");
  }));
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
  ok({"stop"});
  daemon.wait();
  EXPECT_EQ(test::read_text(folder_ / "code"), "0\n");
}

TEST_F(ServiceLossTest, ADatabaseThatIsDeletedOrReplacedUnderADaemonEndsItAndCostsNothing) {
  const fs::path database = folder_ / "results/tearless.db";
  for (const bool is_replaced : {false, true}) {
    ok({"daemon", "--background", "--jobs", "1"});
    ok({"submit", "grid.toml", "--only", "model.kind=a", "--only", "seed=1"});
    RunDirectory some("");
    ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
    if (is_replaced) {
      fs::copy_file(database, folder_ / "other.db");
      fs::rename(folder_ / "other.db", database);
    } else {
      fs::remove(database);
    }
    wait_until_unserved();
    ASSERT_FALSE(is_served());
    EXPECT_TRUE(test::eventually([&] {  // it says so after it has released the lock
      return service_log().find(
                 "results/tearless.db was deleted or replaced while a service used it; no run is lost, "
                 "rebuild it from the run folders: tearless rebuild --workspace results") != std::string::npos;
    }));
    if (!is_replaced) {
      const test::Finished status = tearless({"status"});
      EXPECT_EQ(status.code, 2);
      EXPECT_THAT(status.errors, HasSubstr("rebuild it from them: tearless rebuild --workspace results"));
    }
    ok({"rebuild"});
    ok({"run", "grid.toml"});
    EXPECT_EQ(results(), undisturbed());
    EXPECT_EQ(attempts(), 4) << "what was under way was taken over";
    ok({"verify"});
    test::write_text(folder_ / "results/service.log", "");
    ok({"delete", "all", "--yes"});
    wait_until_unserved();
  }
}

}  // namespace
}  // namespace tearless::harness::service_loss_test
