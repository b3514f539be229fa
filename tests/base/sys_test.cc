// Calls that change files, locks or processes go through base/sys.h; the fault tests do not reach calls that bypass it.
// This test reads the sources.
#include "base/sys.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "base/fault.h"
#include "tests/support/faults.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::sys_test {
namespace {

namespace fs = std::filesystem;

// Direct calls, written with :: as in these sources, or bare if no method has the name, and the writing functions of
// the standard library. Calls that read are allowed, and so is output to the terminal.
const std::regex& forbidden() {
  static const std::regex kCalls(
      R"((^|[^\w:])::(write|open|openat|creat|rename|kill|link|symlink|truncate|fopen)\s*\()"
      R"(|(^|[^\w:.>])(::)?(pwrite|fsync|fdatasync|unlink|rmdir|mkdir|ftruncate|flock|v?fork|exec[lv][ep]*|waitpid|waitid|posix_spawnp?)\s*\()"
      R"(|process::(child|spawn|system)\b)"
      R"(|std::(of|f)stream|std::(system|remove|rename)\(|fs::(remove|remove_all|rename|create_director|copy|resize_file|permissions|create_symlink))");
  return kCalls;
}

// Files that may call the system directly.
const std::set<std::string>& exempt() {
  static const std::set<std::string> kFiles = {
      "base/sys.h",                 // the layer itself
      "base/sys.cc",                //
      "base/fault.cc",              // is called by it
      "harness/children/child.cc",  // starts children by Boost.Process and reports that to base/fault.h
  };
  return kFiles;
}

bool is_allowed(const std::string& line) {
  static const std::regex kReading(R"(::open\([^;]*(O_RDONLY|O_CLOEXEC\)$)|STDOUT_FILENO|g_terminal|^\s*//)");
  return std::regex_search(line, kReading);
}

TEST(SystemCalls, ThatChangeFilesOrProcessesGoThroughOneLayer) {
  int read = 0;
  for (const char* room : {"base", "harness", "engine"}) {
    for (const auto& entry : fs::recursive_directory_iterator(test::source_root() / room)) {
      const std::string name = fs::relative(entry.path(), test::source_root()).string();
      const std::string ending = entry.path().extension();
      if ((ending != ".cc" && ending != ".h" && ending != ".cpp" && ending != ".cu") || exempt().contains(name))
        continue;
      ++read;
      std::ifstream in(entry.path());
      int number = 0;
      for (std::string line; std::getline(in, line);) {
        ++number;
        EXPECT_TRUE(!std::regex_search(line, forbidden()) || is_allowed(line)) << name << ":" << number << ": " << line;
      }
    }
  }
  EXPECT_GT(read, 100);
}

TEST(SystemCalls, TheRuleFindsCallsThatBypassTheLayer) {
  for (const char* line :
       {"  ::rename(a, b);", "  if (::mkdir(path) == 0) {", "std::ofstream(file) << text;", "  fs::remove_all(folder);",
        "  const int fd = ::open(path, O_WRONLY);", "  ::kill(pid, 9);", "  if (fork() == 0)"}) {
    EXPECT_TRUE(std::regex_search(std::string(line), forbidden()) && !is_allowed(line)) << line;
  }
}

// In a child, since a process has one plan for its life.
TEST(SystemCalls, ThatAPlanFailsReturnTheErrorAndDoNothing) {
  const test::TempFolder folder;
  const auto file = folder / "file", moved = folder / "moved", inner = folder / "inner", made = folder / "made";
  test::write_text(file, "bytes");
  fs::create_directory(inner);
  test::Faults faults(folder.path());
  faults.fail(fault::kEveryKind & ~fault::kPhase, EDQUOT, 1, 1'000'000);
  char* const nothing[] = {nullptr};
  EXPECT_EXIT(
      {
        const int fd = ::open(file.c_str(), O_RDWR);
        const pid_t child = ::fork();
        if (child == 0) ::pause();
        faults.begin_here();
        int wrong = 0;
        const auto fails = [&](const char* name, auto result) {
          if (result == -1 && errno == EDQUOT) return;
          std::fprintf(stderr, "%s\n", name);
          ++wrong;
        };
        fails("open", sys::open_for_writing(made.c_str(), O_CREAT | O_WRONLY));
        fails("write", sys::write(fd, "other", 5));
        fails("fsync", sys::fsync(fd));
        fails("ftruncate", sys::ftruncate(fd, 0));
        fails("rename", sys::rename(file.c_str(), moved.c_str()));
        fails("unlink", sys::unlink(file.c_str()));
        fails("rmdir", sys::rmdir(inner.c_str()));
        fails("mkdir", sys::mkdir(made.c_str()));
        fails("flock", sys::flock(fd, LOCK_EX | LOCK_NB));
        fails("fork", sys::fork());
        fails("execve", sys::execve("/bin/true", nothing, nothing));
        fails("kill", sys::kill(child, SIGKILL));
        int status = 0;
        fails("waitpid", sys::waitpid(child, &status, WNOHANG));
        wrong += ::kill(child, SIGTERM) != 0 || ::waitpid(child, &status, 0) != child || WTERMSIG(status) != SIGTERM;
        ::_exit(wrong);
      },
      testing::ExitedWithCode(0), "^$");
  EXPECT_EQ(faults.hits(), 13);
  EXPECT_EQ(test::read_text(file), "bytes");
  EXPECT_TRUE(fs::exists(inner) && !fs::exists(made) && !fs::exists(moved));
}

}  // namespace
}  // namespace tearless::sys_test
