#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/paths.h"

namespace tearless::test {

void expect_golden(const std::string& name, std::string_view text) {
  const std::filesystem::path file = source_root() / "tests/golden" / name;
  if (std::getenv("TEARLESS_BLESS")) {
    std::filesystem::create_directories(file.parent_path());
    write_text(file, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(file))
      << file << " is missing; tools/bless.sh writes it, if the test has Golden in its name";
  EXPECT_EQ(read_text(file), text) << "if the new text is right: tools/bless.sh";
}

}  // namespace tearless::test
