// All twenty settings of TwT's Table 3 through the real programs. Minutes: `make test-long`; one of them runs in every
// `make test` (tests/e2e/shipped_grids_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/table_three.h"

namespace tearless::table_three_test {
namespace {

using test::TableThree;
using testing::HasSubstr;

TEST_F(TableThree, AllTwentySettingsPassSmoke) {
  for (const char* corpus : {"gl→en", "sk→en", "en→vi", "en→he", "ar→en"}) {
    const test::Finished finished = smoke({std::string("corpus=") + corpus});
    EXPECT_EQ(finished.code, 0) << corpus << "\n" << finished.output << finished.errors;
    EXPECT_THAT(finished.output, HasSubstr("4 runs: 4 done")) << corpus;
  }
}

}  // namespace
}  // namespace tearless::table_three_test
