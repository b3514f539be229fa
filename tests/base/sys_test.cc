// Every call that changes something outside the process goes through base/sys.h: what goes around it is never failed or
// killed at by a test. This reads the sources.
#include "base/sys.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "tests/support/paths.h"

namespace tearless {
namespace {

namespace fs = std::filesystem;

// Plain calls, written as this house writes them (::rename) or bare, where the name is nobody's method; and what the
// standard library writes with. Reading is free, and so is what a person is told.
const std::regex& forbidden() {
  static const std::regex kCalls(
      R"((^|[^\w:])::(write|open|openat|creat|rename|kill|link|symlink|truncate|fopen)\s*\()"
      R"(|(^|[^\w:.>])(::)?(pwrite|fsync|fdatasync|unlink|rmdir|mkdir|ftruncate|flock|v?fork|exec[lv][ep]*|waitpid|waitid|posix_spawnp?)\s*\()"
      R"(|std::(of|f)stream|std::(system|remove|rename)\(|fs::(remove|remove_all|rename|create_director|copy|resize_file|permissions|create_symlink))");
  return kCalls;
}

// Where a plain call is right.
const std::set<std::string>& exempt() {
  static const std::set<std::string> kFiles = {
      "base/sys.h",     // the layer itself
      "base/sys.cc",    //
      "base/fault.cc",  // acts below it
  };
  return kFiles;
}

bool is_allowed(const std::string& line) {
  static const std::regex kReading(R"(::open\([^;]*(O_RDONLY|O_CLOEXEC\)$)|STDOUT_FILENO|^\s*//)");
  return std::regex_search(line, kReading);
}

TEST(SystemCalls, ThatChangeTheWorldGoThroughOneLayer) {
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

TEST(SystemCalls, TheRuleSeesWhatGoesAroundTheLayer) {
  for (const char* line :
       {"  ::rename(a, b);", "  if (::mkdir(path) == 0) {", "std::ofstream(file) << text;", "  fs::remove_all(folder);",
        "  const int fd = ::open(path, O_WRONLY);", "  ::kill(pid, 9);", "  if (fork() == 0)"}) {
    EXPECT_TRUE(std::regex_search(std::string(line), forbidden()) && !is_allowed(line)) << line;
  }
}

}  // namespace
}  // namespace tearless
