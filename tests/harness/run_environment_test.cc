// The environment of runs whose service another command has started.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/sealed_json.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::run_environment_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Places = std::map<std::string, std::string>;

// The program writes the variables that it has to the run's folder.
class RunEnvironmentTest : public ServedRunTest {
 protected:
  RunEnvironmentTest() {
    test::write_text(folder_ / "engine", fmt::format("#!/bin/bash\n[ $1 != train ] || env > $2/env\nexec {} \"$@\"\n",
                                                     test::program("fake-engine").string()));
    fs::permissions(folder_ / "engine", fs::perms::owner_all);
    write("one.toml", "a");
    write("two.toml", "b");
  }
  void write(const char* grid, const std::string& kind, const std::string& more = "") const {
    test::write_text(folder_ / grid,
                     fmt::format("program = \"engine\"\n{}\n[axis]\n\"model.kind\" = [\"{}\"]\n", more, kind));
  }
  test::Finished with(const Places& variables, std::vector<std::string> arguments) const {
    test::Command one = command(std::move(arguments));
    for (const auto& [name, value] : variables) one.environment[name] = value;
    const test::Finished finished = test::run(one);
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    return finished;
  }
  std::string environment_of_kind(const std::string& kind) const {
    for (const RunDirectory& run : runs()) {
      if (test::read_text(run.settings()).find("model.kind = \"" + kind + "\"") == std::string::npos) continue;
      return "\n" + test::read_text(run.root() / "env");
    }
    return "";
  }
};

TEST_F(RunEnvironmentTest, AVariableThatIsNeitherUsualNorNamedIsTheServicesAndIsNamed) {
  with({{"BRANCH", "1"}, {"FIRST", "1"}}, {"daemon", "--background"});
  const std::string errors = with({{"BRANCH", "2"}, {"OTHER", "2"}}, {"run", "two.toml"}).errors;
  EXPECT_THAT(errors, HasSubstr("runs have BRANCH, FIRST, OTHER from the service (process "));
  EXPECT_THAT(errors, HasSubstr("name them in [policy] environment of the grid"));
  EXPECT_THAT(environment_of_kind("b"), HasSubstr("\nBRANCH=1\n"));
  EXPECT_THAT(with({{"BRANCH", "1"}, {"FIRST", "1"}}, {"submit", "two.toml"}).errors, Not(HasSubstr("BRANCH")));
}

TEST_F(RunEnvironmentTest, NamedAndUsualVariablesAreTheSubmissionsAlsoWithAnotherServiceLater) {
  write("two.toml", "b", "[policy]\nenvironment = [\"BRANCH\", \"HF_*\"]");
  with({{"BRANCH", "1"}, {"OMP_NUM_THREADS", "7"}, {"HF_OLD", "1"}, {"VIRTUAL_ENV", "/old"}},
       {"daemon", "--background"});
  with({}, {"submit", "one.toml"});
  with({}, {"wait", "all"});
  EXPECT_THAT(environment_of_kind("a"), HasSubstr("\nBRANCH=1\n"));
  EXPECT_THAT(environment_of_kind("a"), Not(HasSubstr("OMP_NUM_THREADS"))) << "the submission had none";
  ok({"pause", "all"});
  const Places ours = {{"BRANCH", "2"}, {"HF_NEW", "2"}, {"CONDA_PREFIX", "/ours"}};
  EXPECT_THAT(with(ours, {"submit", "two.toml"}).errors, Not(HasSubstr("from the service")));
  with({}, {"wait", "all"});
  const auto expect_ours = [&] {
    const std::string all = environment_of_kind("b");
    EXPECT_THAT(
        all, testing::AllOf(HasSubstr("\nBRANCH=2\n"), HasSubstr("\nHF_NEW=2\n"), HasSubstr("\nCONDA_PREFIX=/ours\n")));
    EXPECT_THAT(all, testing::AllOf(Not(HasSubstr("HF_OLD")), Not(HasSubstr("VIRTUAL_ENV=/old"))));
  };
  expect_ours();
  EXPECT_THAT(ok({"explain", "two.toml"}).output,
              HasSubstr("\n  environment of its submission: BRANCH=2, HF_NEW=2, and the usual variables\n"));
  EXPECT_EQ(nlohmann::json::parse(ok({"--json", "explain", "two.toml"}).output).at(0).at("environment").at("HF_NEW"),
            "2");
  ok({"stop", "--wait"});
  for (const RunDirectory& run : runs()) fs::remove_all(run.root());
  with({{"BRANCH", "3"}}, {"daemon", "--background"});
  with(ours, {"submit", "two.toml"});
  with({}, {"wait", "all"});
  expect_ours();
}

// Files of the workspace, but for what the program itself writes, and of copies.
std::vector<std::string> files_with(const std::string& text, const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool may_have_it = !entry.is_regular_file() || entry.path().filename() == "env";
    if (!may_have_it && test::read_text(entry.path()).find(text) != std::string::npos) files.push_back(entry.path());
  }
  return files;
}

TEST_F(RunEnvironmentTest, ValuesOfSecretsAreInNoFile) {
  write("two.toml", "b", "[policy]\nenvironment = [\"HF_*\", \"TOKENIZERS_*\"]");
  with({}, {"daemon", "--background"});
  with({{"HF_TOKEN", "hush-1"}, {"TOKENIZERS_PARALLELISM", "0"}, {"HF_KEY", "hush-2"}}, {"submit", "two.toml"});
  with({}, {"wait", "all"});
  EXPECT_THAT(environment_of_kind("b"), testing::AllOf(HasSubstr("\nHF_TOKEN=hush-1\n"), HasSubstr("\nHF_KEY=hush-2\n"),
                                                       HasSubstr("\nTOKENIZERS_PARALLELISM=0\n")));
  EXPECT_THAT(ok({"explain", "last"}).output,
              HasSubstr("environment of its submission: TOKENIZERS_PARALLELISM=0, HF_KEY (secret), HF_TOKEN (secret)"));
  ok({"copy", "copies"});
  ok({"stop", "--wait"});
  EXPECT_THAT(files_with("hush", folder_.path()), testing::IsEmpty());
  EXPECT_THAT(files_with("HF_TOKEN", folder_ / "copies"), Not(testing::IsEmpty())) << "but the names are";
}

TEST_F(RunEnvironmentTest, ASecretThatTheProgramPrintsIsHiddenInItsLogAndInTheReasonOfItsFailure) {
  write("two.toml", "b", "[policy]\nenvironment = [\"HF_*\"]\ntries = { crashed = 1 }");
  test::write_text(folder_ / "engine", fmt::format("#!/bin/bash\n[ $1 != train ] || {{ echo 401 for $HF_TOKEN; echo "
                                                   "$HF_TOKEN is refused; exit 4; }}\nexec {} \"$@\"\n",
                                                   test::program("fake-engine").string()));
  test::Command run = command({"run", "two.toml"});
  run.environment["HF_TOKEN"] = "hush-hush";
  EXPECT_EQ(test::run(run).code, 1);
  EXPECT_THAT(ok({"explain", "two.toml"}).output, HasSubstr("$HF_TOKEN is refused"));
  ok({"copy", "copies.tar.gz"});
  ok({"stop", "--wait"});
  EXPECT_THAT(files_with("hush", folder_.path()), testing::IsEmpty());
  EXPECT_THAT(test::read_text(runs().at(0).attempt(1) / "log.txt"), HasSubstr("401 for $HF_TOKEN\n"));
}

TEST_F(RunEnvironmentTest, SecretsThatTheSweepHadOrTheGridNamesAreWaitedFor) {
  write("one.toml", "a", "[policy]\nenvironment = [\"HF_*\"]");
  write("two.toml", "b", "[policy]\nenvironment = [\"OPENAI_API_KEY\"]");
  const test::Finished named = tearless({"run", "two.toml"});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.errors, HasSubstr("two.toml: its runs need OPENAI_API_KEY of [policy] environment"));
  EXPECT_FALSE(fs::exists(folder_ / "results")) << "nothing was written";
  queue("one.toml");
  with({{"HF_TOKEN", "hush"}}, {"submit", "one.toml"});
  kill_service();
  with({}, {"daemon", "--background"});
  ok({"submit", "one.toml"});
  ok({"cancel", "blocker.toml"});
  EXPECT_TRUE(
      test::eventually([&] { return ok({"status"}).output.find("its runs need HF_TOKEN") != std::string::npos; }));
  EXPECT_EQ(environment_of_kind("a"), "") << "nothing was trained";
  test::Command invalid = command({"resume", "one.toml"});
  invalid.environment["HF_TOKEN"] = "\xff\xfe";
  EXPECT_EQ(test::run(invalid).code, 0) << "which is none";
  const std::string run = nlohmann::json::parse(ok({"--json", "runs", "one.toml"}).output).at(0).at("run");
  ok({"pause", run});
  with({{"HF_TOKEN", "hush"}}, {"resume", run});
  with({}, {"resume", "one.toml"});
  ok({"wait", "one.toml"});
  EXPECT_THAT(environment_of_kind("a"), HasSubstr("\nHF_TOKEN=hush\n")) << "handed over with the run";
}

TEST_F(RunEnvironmentTest, ACopyLosesTheSecretsThatAnOlderBuildKept) {
  with({{"HF_HOME", "/hf"}}, {"run", "one.toml"});
  const auto add_secret = [](const fs::path& file, const char* where) {
    nlohmann::json record = *read_sealed(file);
    record[nlohmann::json::json_pointer(where)]["HF_TOKEN"] = "hush";
    record[nlohmann::json::json_pointer(where)]["HF_HOME"] = "/hf";
    test::write_text(file, sealed(record));
  };
  const RunDirectory run = runs().at(0);
  fs::remove(run.attempt(1) / "exit.json");  // which has no checksums there
  add_secret(run.attempt(1) / "start.json", "/environment");
  for (const auto& sweep : fs::directory_iterator(folder_ / "results/sweeps"))
    add_secret(sweep.path() / "sweep.json", "/policy/environment/variables");
  ok({"copy", "copy"});
  EXPECT_THAT(files_with("hush", folder_ / "copy"), testing::IsEmpty());
  EXPECT_GE(files_with("/hf", folder_ / "copy").size(), 2u) << "other values stay, also in the rebuilt database";
}

TEST_F(RunEnvironmentTest, AServiceWithoutTheSecretsPausesTheSweepAndResumeHandsThemOn) {
  write("two.toml", "b", "[policy]\nenvironment = [\"HF_*\"]");
  queue("one.toml");
  with({{"HF_TOKEN", "hush"}}, {"submit", "two.toml"});
  kill_service();
  with({}, {"daemon", "--background"});
  ok({"cancel", "blocker.toml"});
  const auto status = [&] { return ok({"status"}).output; };
  ASSERT_TRUE(test::eventually([&] { return status().find("HF_TOKEN") != std::string::npos; })) << status();
  EXPECT_THAT(status(), HasSubstr("then: tearless resume "));
  EXPECT_EQ(tearless({"wait", "two.toml"}).code, 1);
  ok({"resume", "two.toml"});
  EXPECT_TRUE(test::eventually([&] { return status().find("HF_TOKEN") != std::string::npos; })) << "it has none either";
  with({{"HF_TOKEN", "again"}}, {"resume", "two.toml"});
  ok({"wait", "two.toml"});
  EXPECT_THAT(environment_of_kind("b"), HasSubstr("\nHF_TOKEN=again\n"));
}

TEST_F(RunEnvironmentTest, IsNoPartOfARunsId) {
  with({{"OMP_NUM_THREADS", "1"}}, {"run", "one.toml"});
  write("one.toml", "a", "[policy]\nenvironment = \"BRANCH\"");
  with({{"OMP_NUM_THREADS", "2"}, {"BRANCH", "2"}}, {"run", "one.toml"});
  EXPECT_EQ(runs().size(), 1u);
  EXPECT_EQ(attempts(), 1);
}

}  // namespace
}  // namespace tearless::harness::run_environment_test
