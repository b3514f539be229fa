// docs/engine_settings.md is generated from the option structs and must be up to date.
#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::settings_page_test {
namespace {

TEST(SettingsPage, IsWhatTheEnginePrints) {
  const test::Finished page = test::run({.arguments = {test::program("tearless-engine").string(), "settings"}});
  EXPECT_EQ(page.code, 0);
  // Not EXPECT_EQ, which prints both pages and drowns the sentence.
  EXPECT_TRUE(page.output == test::read_text(test::source_root() / "docs/engine_settings.md"))
      << "docs/engine_settings.md is not of these settings; run build/bin/tearless-engine settings > "
         "docs/engine_settings.md";
}

}  // namespace
}  // namespace tearless::settings_page_test
