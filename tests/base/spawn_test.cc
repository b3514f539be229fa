// What a spawned program is given.
#include "base/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/paths.h"

namespace tearless::spawn_test {
namespace {

// Shells take the last of two variables with one name, most other programs the first.
TEST(Spawn, AVariableThatIsReplacedIsInTheEnvironmentOnce) {
  const test::TempFolder folder;
  ::setenv("TEARLESS_SPAWN_TEST", "of the parent", /*overwrite=*/1);
  const int out = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const pid_t pid = spawn({.arguments = {"/usr/bin/env"},
                           .environment = {{"TEARLESS_SPAWN_TEST", "of the child"}},
                           .standard_output = out});
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  ::close(out);
  ::unsetenv("TEARLESS_SPAWN_TEST");
  const std::string environment = test::read_text(folder / "out");
  EXPECT_NE(environment.find("TEARLESS_SPAWN_TEST=of the child\n"), std::string::npos);
  EXPECT_EQ(environment.find("of the parent"), std::string::npos);
}

}  // namespace
}  // namespace tearless::spawn_test
