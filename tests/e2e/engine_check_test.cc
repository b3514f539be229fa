// `tearless-engine check --json` as a process that is asked line by line (docs/run_directory.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine_check_test {
namespace {

// A program that asks one question at a time would otherwise wait for ever, and so would this test.
TEST(EngineCheck, AnswersEachLineBeforeItWaitsForTheNextAndALastOneWithoutItsEnd) {
  const test::TempFolder folder;
  const test::Finished ended = test::run({.arguments = {"/bin/sh", "-c", R"(
mkfifo questions answers
"$0" check --json < questions > answers &
exec 3> questions 4< answers
echo '{"settings": {"first": 1}}' >&3
read -r answer <&4; echo "$answer"
printf '{"settings": {"second": 1}}\n{"settings": ' >&3
read -r answer <&4; echo "$answer"
printf '{"third": 1}}' >&3
exec 3>&-
cat <&4
wait $! && echo ended)",
                                                        test::program("tearless-engine").string()},
                                          .environment = {},
                                          .folder = folder.path()});
  EXPECT_THAT(ended.output, testing::MatchesRegex(".*\"first\\\\\".*\n.*\"second\\\\\".*\n.*\"third\\\\\".*\nended\n"));
  EXPECT_EQ(ended.errors, "");
}

}  // namespace
}  // namespace tearless::engine_check_test
