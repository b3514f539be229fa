// `tearless-engine check --json` as a process that is asked line by line (docs/run_directory.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine_check_test {
namespace {

/// The lines that tearless-engine prints to `questions`, shell commands that write to descriptor 3 and read from 4.
std::string answers_to(const std::string& questions) {
  const test::TempFolder folder;
  const std::string script = R"(
mkfifo questions answers
"$0" check --json < questions > answers &
exec 3> questions 4< answers
)" + questions + R"(
exec 3>&-
cat <&4
wait $! && echo ended)";
  const test::Finished ended =
      test::run({.arguments = {"/bin/sh", "-c", script, test::program("tearless-engine").string()},
                 .environment = {},
                 .folder = folder.path()});
  EXPECT_EQ(ended.errors, "");
  return ended.output;
}

// A program that asks one question at a time would otherwise wait for ever, and so would this test.
TEST(EngineCheck, AnswersEachLineBeforeItWaitsForTheNextAndALastOneWithoutItsEnd) {
  EXPECT_THAT(answers_to(R"(
echo '{"settings": {"first": 1}}' >&3
read -r answer <&4; echo "$answer"
printf '{"settings": {"second": 1}}\n{"settings": ' >&3
read -r answer <&4; echo "$answer"
printf '{"third": 1}}' >&3)"),
              testing::MatchesRegex(".*\"first\\\\\".*\n.*\"second\\\\\".*\n.*\"third\\\\\".*\nended\n"));
}

TEST(EngineCheck, LooksAtTheFilesAgainForALineThatArrivesLater) {
  const std::string answers = answers_to(R"(
ask() {
  echo '{"settings":{"data.dev":"dev","data.name":"x","data.source":"a","data.target":"b","data.test":"test",' \
    '"data.train":"train","train.seed":'$1'},"folder":"'"$PWD"'"}' | tr -d '\n' >&3
  echo >&3
  read -r answer <&4; echo "$answer"
}
ask 1
for set in train dev test; do echo "a b" > $set.a; echo "c d" > $set.b; done
ask 2)");
  EXPECT_THAT(answers, testing::MatchesRegex(".*\"waiting_data\".*\n.*\"ready\".*\nended\n"));
}

}  // namespace
}  // namespace tearless::engine_check_test
