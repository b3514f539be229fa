// What people type need not be spelled as the grid has it: numbers, names of grid files, words after `--`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::spelling_of_words_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SpellingOfWords : public RunTest {
 protected:
  SpellingOfWords() {
    test::write_text(folder_ / "grid.toml",
                     "[axis]\n\"train.lr\" = [5e-4, 0.001]\n\"model.size\" = [3e6, 1.0]\n[[exclude]]\n"
                     "when = { \"train.lr\" = 1e-3, \"model.size\" = 1 }\nwhy = \"not needed\"\n");
  }
  size_t runs_meant(const std::vector<std::string>& words) const {
    std::vector<std::string> command = {"--json", "runs"};
    command.insert(command.end(), words.begin(), words.end());
    return json::parse(ok(command).output).size();
  }
};

TEST_F(SpellingOfWords, OfOneNumberMayDiffer) {
  const json all = json::parse(ok({"--json", "plan", "grid.toml"}).output);
  EXPECT_EQ(all.at("runs").size(), 3u) << "the exclusion has 1e-3 and 1 where the axes have 0.001 and 1.0";
  for (const char* only : {"train.lr=5e-4", "train.lr=0.0005", "train.lr=.5e-3", "train.lr=+0.00050"}) {
    EXPECT_EQ(json::parse(ok({"--json", "plan", "grid.toml", "--only", only}).output).at("runs").size(), 2u) << only;
  }
  ok({"run", "grid.toml"});
  EXPECT_EQ(runs_meant({"train.lr=5e-4"}), 2u);
  EXPECT_EQ(runs_meant({"model.size=3000000", "train.lr=1e-3"}), 1u);
  EXPECT_EQ(runs_meant({"seed=1.0"}), 3u);
  EXPECT_EQ(tearless({"runs", "train.lr=5e-3"}).code, 2);
  EXPECT_THAT(ok({"explain", "grid.toml", "model.size=1"}).output, HasSubstr("model.size=1.0, seed 1"));
}

TEST_F(SpellingOfWords, AGridFileIsOneUnderAnyName) {
  for (const char* name : {"grid.TOML", "grid", "grid.conf", "grid.v2.toml"}) {
    fs::copy_file(folder_ / "grid.toml", folder_ / name);
    ok({"run", name});
    for (const char* command : {"table", "explain", "runs", "status", "plan"}) {
      EXPECT_EQ(tearless({command, name}).code, 0) << command << " " << name << tearless({command, name}).errors;
    }
  }
  test::write_text(folder_ / "done", "");
  EXPECT_GT(runs_meant({"done"}), 0u) << "a state, whatever files there are";
}

TEST_F(SpellingOfWords, WordsBehindTwoHyphensAreNoOptions) {
  fs::copy_file(folder_ / "grid.toml", folder_ / "--grid");
  EXPECT_THAT(tearless({"plan", "--", "--grid"}).errors, HasSubstr("--grid: its sweeps are called by this name"));
  EXPECT_EQ(tearless({"plan", "--", "grid.toml"}).code, 0);
}

// --- names of sweeps -------------------------------------------------------------------------------------------------

TEST_F(SpellingOfWords, ANameThatMeansSomethingAlreadyIsRefusedBeforeAnythingIsWritten) {
  ok({"run", "grid.toml", "--name", "first"});
  fs::copy_file(folder_ / "grid.toml", folder_ / "other.toml");
  const std::string run = runs().front().id().substr(0, 5);
  for (const auto& [name, why] : {std::pair(std::string("first"), std::string("is the name of the sweep grid-")),
                                  {run, "is the beginning of the id of the run " + run},
                                  {"[a]", "looks like a list"}}) {
    const test::Finished refused = tearless({"submit", "other.toml", "--name", name});
    EXPECT_EQ(refused.code, 2) << name;
    EXPECT_THAT(refused.errors, HasSubstr(why));
  }
  EXPECT_EQ(folders_in(folder_ / "results/sweeps").size(), 1u);
  ok({"run", "grid.toml", "--name", "first"});
}

}  // namespace
}  // namespace tearless::harness::spelling_of_words_test
