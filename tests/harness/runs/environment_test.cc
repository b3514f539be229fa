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
                                                                                         {"HF_TOKEN", "x"},
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

TEST(SubmittedEnvironment, SurvivesItsJson) {
  const SubmittedEnvironment before{.names = {"HF_*"}, .variables = {{"HF_A", "\"1\"\n"}}};
  const auto after = nlohmann::json::parse(nlohmann::json(before).dump()).get<SubmittedEnvironment>();
  EXPECT_EQ(after.names, before.names);
  EXPECT_EQ(after.variables, before.variables);
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
