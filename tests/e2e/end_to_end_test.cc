// From grid files to tables with the two real programs, with processes killed on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/lock_file.h"
#include "tests/e2e/small_training.h"

namespace tearless::end_to_end_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class EndToEnd : public testing::Test {
 protected:
  EndToEnd() {
    test::write_small_corpus(folder_.path());
    std::string grid =
        "title = \"Two placements\"\nseeds = 2\n[axis]\n\"model.placement\" = [\"post\", \"pre\"]\n" +
        std::string("[table]\nrows = \"model.placement\"\nscores = [\"test.bleu_13a\", \"test.ppl\"]\n[set]\n");
    for (const auto& [key, value] : test::small_settings()) grid += "\"" + key + "\" = " + value + "\n";
    test::write_text(folder_ / "grid.toml", grid);
  }

  test::Command command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), test::program("tearless").string());
    return {.arguments = std::move(arguments),
            .environment = {{"TEARLESS_CACHE", (folder_ / "cache").string()},
                            {"TEARLESS_ENGINE", test::program("tearless-engine").string()}},
            .folder = folder_.path()};
  }
  test::Finished tearless(std::vector<std::string> arguments) const { return test::run(command(std::move(arguments))); }

  std::vector<RunDirectory> runs(const std::string& workspace) const {
    std::vector<RunDirectory> all;
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(folder_ / workspace / "runs", absent))
      all.emplace_back(entry.path());
    return all;
  }
  int64_t attempts(const std::string& workspace) const {
    int64_t count = 0;
    for (const RunDirectory& run : runs(workspace)) count += run.newest_attempt();
    return count;
  }

  /// Waits for a run whose newest attempt, `attempt` or later, has just made a few more updates; returns its
  /// supervisor.
  pid_t supervisor_in_the_middle(const std::string& workspace, std::map<std::string, size_t>& seen) const {
    pid_t found = 0;
    EXPECT_TRUE(test::eventually([&] {
      for (const RunDirectory& run : runs(workspace)) {
        const size_t lines = test::count_lines(run.metrics());
        const fs::path record = run.attempt(run.newest_attempt()) / "start.json";
        if (lines < seen[run.root()] + 12 || !fs::exists(record) || fs::exists(run.done()) ||
            !LockFile::is_held(run.lock()))
          continue;
        seen[run.root()] = lines;
        const json start = json::parse(test::read_text(record));
        found = start.at("supervisor").at("pid");
        return true;
      }
      return false;
    }));
    return found;
  }

  test::TempFolder folder_;
};

void kill_now(pid_t process) {
  ASSERT_GT(process, 1);  // 0 would be ourselves
  ::kill(process, SIGKILL);
}

/// The only child of a process.
pid_t child_of(pid_t parent) {
  std::ifstream children("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  pid_t child = 0;
  children >> child;
  return child;
}

TEST_F(EndToEnd, FromAGridFileToATable) {
  const test::Finished plan = tearless({"plan", "grid.toml"});
  EXPECT_EQ(plan.code, 0) << plan.errors;
  const test::Finished run = tearless({"run", "grid.toml"});
  ASSERT_EQ(run.code, 0) << run.output << run.errors;
  EXPECT_THAT(run.output, HasSubstr("4 runs: 4 done"));
  const test::Finished table = tearless({"table", "grid.toml"});
  EXPECT_EQ(table.code, 0) << table.errors;
  EXPECT_THAT(table.output, HasSubstr("±"));
  EXPECT_THAT(table.output, Not(HasSubstr("missing")));
  EXPECT_THAT(table.output, Not(HasSubstr("mixed")));
  const std::string used = tearless({"sql", "SELECT DISTINCT arithmetic FROM attempts_view"}).output;
  EXPECT_THAT(used, testing::AnyOf(HasSubstr("MKL "), HasSubstr("OpenBLAS ")));

  const int64_t before = attempts("results");
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 0);
  EXPECT_EQ(attempts("results"), before) << "a second run trains nothing";
  EXPECT_EQ(tearless({"table", "grid.toml"}).output, table.output);

  // The engine, its supervisor and the harness are killed, one after another, in another workspace: the same table.
  const std::vector<std::string> in_second = {"run", "grid.toml", "--workspace", "second"};
  std::map<std::string, size_t> seen;
  {
    test::Background harness(command(in_second));
    kill_now(child_of(supervisor_in_the_middle("second", seen)));
    kill_now(supervisor_in_the_middle("second", seen));
    supervisor_in_the_middle("second", seen);
    harness.signal(SIGKILL);
    EXPECT_EQ(harness.wait().code, 128 + SIGKILL);
  }
  const test::Finished again = tearless(in_second);
  ASSERT_EQ(again.code, 0) << again.output << again.errors;
  EXPECT_GT(attempts("second"), before);
  EXPECT_EQ(tearless({"table", "grid.toml", "--workspace", "second"}).output, table.output);

  // The database can be rebuilt from the run folders.
  for (const auto& entry : fs::directory_iterator(folder_ / "second")) {
    if (entry.path().filename().string().starts_with("tearless.db")) fs::remove(entry.path());
  }
  const test::Finished rebuilt = tearless({"rebuild", "--workspace", "second"});
  EXPECT_EQ(rebuilt.code, 0) << rebuilt.errors;
  EXPECT_EQ(tearless({"table", "grid.toml", "--workspace", "second"}).output, table.output);

  // A third seed that is trained with the other matmul library.
  std::string grid = test::read_text(folder_ / "grid.toml");
  grid.replace(grid.find("seeds = 2"), 9, "seeds = 3");
  const bool is_mkl = used.find("MKL ") != std::string::npos;
  test::write_text(folder_ / "grid.toml", grid + "\"run.matmul\" = \"" + (is_mkl ? "openblas" : "mkl") + "\"\n");
  const test::Finished more = tearless({"run", "grid.toml"});
  if (is_mkl && more.code != 0) return;  // OpenBLAS is not installed
  EXPECT_THAT(more.output, HasSubstr("6 runs: 6 done")) << more.errors;
  EXPECT_THAT(tearless({"table", "grid.toml"}).output, HasSubstr("°: mixed, trained on more than one kind"));
}

}  // namespace
}  // namespace tearless::end_to_end_test
