// Which variables a run has from its submission, and which from the service.
#include "harness/runs/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"

namespace tearless::harness::environment_test {
namespace {

using testing::ElementsAre;
using Changes = std::map<std::string, std::optional<std::string>>;

TEST(SubmittedEnvironment, HasTheUsualVariablesAndThoseThatAreNamed) {
  const Variables all = {{"PATH", "/bin"},
                         {"CONDA_PREFIX", "/conda"},
                         {"OMP_NUM_THREADS", "2"},
                         {"HF_HOME", "/hf"},
                         {"HF_TOKEN", "x"},
                         {"BRANCH", "2"},
                         {"BRANCHES", "3"},
                         {"FOO1", "1"},
                         {"CUDA_VISIBLE_DEVICES", "0"},
                         {"CUDA_HOME", "/cuda"},
                         {"TEARLESS_ENGINE", "e"}};
  EXPECT_EQ(submitted_environment(all, {}).variables,
            (Variables{{"PATH", "/bin"}, {"CONDA_PREFIX", "/conda"}, {"OMP_NUM_THREADS", "2"}}));
  EXPECT_EQ(submitted_environment(all, {"HF_*", "BRANCH", "FOO?"}).variables, (Variables{{"PATH", "/bin"},
                                                                                         {"CONDA_PREFIX", "/conda"},
                                                                                         {"OMP_NUM_THREADS", "2"},
                                                                                         {"HF_HOME", "/hf"},
                                                                                         {"BRANCH", "2"},
                                                                                         {"FOO1", "1"}}));
  EXPECT_EQ(submitted_environment(all, {"CUDA_*"}).variables.count("CUDA_VISIBLE_DEVICES"), 0u) << "a run gets its own";
  EXPECT_EQ(submitted_environment(all, {"*"}).variables.count("TEARLESS_ENGINE"), 0u);
  EXPECT_EQ(submitted_environment({{"HF_A", "\xff"}, {"HF_B", "b"}}, {"HF_*"}).variables, (Variables{{"HF_B", "b"}}));
}

TEST(SubmittedEnvironment, ReplacesTheServicesVariablesAndRemovesThoseThatTheSubmissionHadNot) {
  const SubmittedEnvironment environment =
      submitted_environment({{"PATH", "/ours"}, {"BRANCH", ""}}, {"BRANCH", "GONE"});
  EXPECT_EQ(changes_for(environment, {{"PATH", "/theirs"}, {"VIRTUAL_ENV", "/v"}, {"GONE", "1"}, {"OTHER", "o"}}),
            (Changes{{"PATH", "/ours"}, {"BRANCH", ""}, {"VIRTUAL_ENV", std::nullopt}, {"GONE", std::nullopt}}));
  EXPECT_EQ(changes_for({}, {{"OTHER", "o"}}), Changes());
}

TEST(SubmittedEnvironment, WhatDiffersAndIsNotTakenIsNamedButForWhatATerminalSets) {
  const Variables ours = {{"PATH", "/ours"},
                          {"BRANCH", "2"},
                          {"HF_HOME", "/a"},
                          {"SAME", "1"},
                          {"PWD", "/x"},
                          {"TMUX_PANE", "1"},
                          {"TEARLESS_IDLE_SECONDS", "1"},
                          {"NEW", ""}};
  const Variables theirs = {{"PATH", "/"}, {"BRANCH", "1"}, {"HF_HOME", "/b"},
                            {"SAME", "1"}, {"PWD", "/y"},   {"OLD", "1"}};
  EXPECT_THAT(not_taken(submitted_environment(ours, {}), ours, theirs), ElementsAre("BRANCH", "HF_HOME", "NEW", "OLD"));
  EXPECT_THAT(not_taken(submitted_environment(ours, {"BRANCH", "HF_*"}), ours, theirs), ElementsAre("NEW", "OLD"));
}

TEST(SubmittedEnvironment, IsShownWithoutTheUsualVariables) {
  EXPECT_EQ(named_only({{"PATH", "/"}, {"MKL_NUM_THREADS", "1"}, {"HF_HOME", "/hf"}}), (Variables{{"HF_HOME", "/hf"}}));
}

TEST(Secret, IsAVariableOfWhichAPartOfTheNameSaysSo) {
  for (const char* name : {"HF_TOKEN", "WANDB_API_KEY", "OPENAI_APIKEY", "PYTHON_SECRET_2", "DB_PASSWORD", "A_PASSWD_B",
                           "PASS", "GOOGLE_APPLICATION_CREDENTIALS", "MY_CREDENTIAL", "X_AUTH", "hf_token"}) {
    EXPECT_TRUE(is_secret(name)) << name;
  }
  for (const char* name :
       {"TOKENIZERS_PARALLELISM", "HF_HOME", "KEYBOARD", "PASSAGE_LENGTH", "AUTHOR", "MONKEY", "", "_"}) {
    EXPECT_FALSE(is_secret(name)) << name;
  }
}

TEST(SubmittedEnvironment, HasTheNamesOfSecretsAlone) {
  const Variables all = {{"HF_TOKEN", "x"}, {"HF_HOME", "/hf"}, {"PYTHON_API_KEY", "y"}, {"OTHER_TOKEN", "z"}};
  const SubmittedEnvironment environment = submitted_environment(all, {"HF_*"});
  EXPECT_THAT(environment.secrets, ElementsAre("HF_TOKEN")) << "not PYTHON_API_KEY, for which nobody asked";
  EXPECT_EQ(environment.variables, (Variables{{"HF_HOME", "/hf"}}));
  EXPECT_EQ(secrets_in(all, environment), (Variables{{"HF_TOKEN", "x"}}));
  EXPECT_EQ(secrets_not_in(all, environment), "");
  EXPECT_EQ(secrets_not_in({{"HF_HOME", ""}}, environment), "HF_TOKEN");
  EXPECT_EQ(secrets_not_in({{"HF_TOKEN", "\xff"}}, environment), "HF_TOKEN") << "no text";
  EXPECT_THAT(submitted_environment({}, {"A_KEY", "B_KEY*"}).secrets, ElementsAre("A_KEY")) << "which is named whole";
  EXPECT_EQ(changes_for(environment, all), (Changes{{"HF_HOME", "/hf"}})) << "they stay as they are";
}

TEST(SubmittedEnvironment, OfAnOlderBuildLosesTheValuesOfSecrets) {
  const nlohmann::json kept = {{"names", {"HF_*"}}, {"variables", {{"HF_TOKEN", "x"}, {"HF_HOME", "/hf"}}}};
  const auto read = kept.get<SubmittedEnvironment>();
  EXPECT_THAT(read.secrets, ElementsAre("HF_TOKEN"));
  EXPECT_EQ(read.variables, (Variables{{"HF_HOME", "/hf"}}));
  EXPECT_EQ(nlohmann::json(read).dump().find("\"x\""), std::string::npos);
}

TEST(SubmittedEnvironment, SurvivesItsJson) {
  const SubmittedEnvironment before{.names = {"HF_*"}, .variables = {{"HF_A", "\"1\"\n"}}, .secrets = {"HF_TOKEN"}};
  const auto after = nlohmann::json::parse(nlohmann::json(before).dump()).get<SubmittedEnvironment>();
  EXPECT_EQ(after.names, before.names);
  EXPECT_EQ(after.variables, before.variables);
  EXPECT_EQ(after.secrets, before.secrets);
}

TEST(Variables, OfAProcessAreReadFromProc) {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder / "7");
  test::write_text(folder / "7/environ", std::string("A=1\0B=x=y\nz\0no variable\0C=\0", 27));
  EXPECT_EQ(variables_of(7, folder.path()), (Variables{{"A", "1"}, {"B", "x=y\nz"}, {"C", ""}}));
  EXPECT_EQ(variables_of(8, folder.path()), Variables());
  ::setenv("TEARLESS_ENVIRONMENT_TEST", "now", 1);
  EXPECT_EQ(own_variables().at("TEARLESS_ENVIRONMENT_TEST"), "now");
  ::unsetenv("TEARLESS_ENVIRONMENT_TEST");
}

}  // namespace
}  // namespace tearless::harness::environment_test
