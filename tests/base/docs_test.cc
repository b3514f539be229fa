// The documents name functions and files that exist: each `name` (`file`) is looked up. Their lines fit a terminal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "base/build_stamp.h"
#include "base/run_directory.h"
#include "tests/support/paths.h"

namespace tearless::docs_test {
namespace {

namespace fs = std::filesystem;

/// The sources by path, relative to the repository, and by file name where only one file has it.
std::map<std::string, std::string> sources() {
  std::map<std::string, std::string> texts;
  std::map<std::string, int> named;
  for (const char* room : {"base", "engine", "harness", "tests", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(test::source_root() / room)) {
      if (!entry.is_regular_file() || entry.path().string().find("/golden/") != std::string::npos) continue;
      const std::string text = test::read_text(entry.path());
      texts[fs::relative(entry.path(), test::source_root()).string()] = text;
      const std::string name = entry.path().filename().string();
      if (++named[name] == 1) {
        texts[name] = text;
      } else {
        texts.erase(name);
      }
    }
  }
  return texts;
}

TEST(Docs, NameFunctionsThatStandInTheFileBesideThem) {
  const std::map<std::string, std::string> texts = sources();
  // `Store::submit` (`harness/store/store_writing.cc`), also where a line ends between the two
  const std::regex pair(R"(`([A-Za-z_:~]+)(?:\(\))?`\s+\(`([A-Za-z0-9_/]+\.(?:cc|h|cu|cuh|py|sh|def|sql))`)");
  int pairs = 0;
  for (const auto& entry : fs::directory_iterator(test::source_root() / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = test::read_text(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), pair), end; at != end; ++at) {
      ++pairs;
      const std::string name = (*at)[1], file = (*at)[2];
      const auto source = texts.find(file);
      if (source == texts.end()) {
        ADD_FAILURE() << entry.path().filename() << " says `" << name << "` (`" << file << "`): no file or several";
        continue;
      }
      const std::regex word("\\b" + name.substr(name.rfind(':') + 1) + "\\b");
      EXPECT_TRUE(std::regex_search(source->second, word))
          << entry.path().filename() << " says `" << name << "` (`" << file << "`), which has no such name";
    }
  }
  EXPECT_GT(pairs, 20) << "the documents are written in another form now, which this test does not find";
}

TEST(Docs, NameTheWindowsOfSweepsThatDoNot) {
  const std::string page = test::read_text(test::source_root() / "docs/statistics_files.md");
  for (const char* pattern : kEngineWindows)
    EXPECT_NE(page.find(fmt::format("`{}`", pattern)), std::string::npos) << pattern;
}

TEST(Docs, OfInstallingNameEveryPackageThatSetUpInstalls) {
  const std::string page = test::read_text(test::source_root() / "docs/install.md");
  const std::string setup = test::read_text(test::source_root() / "tools/setup.sh");
  const size_t begin = setup.find("\npackages=(") + 11;
  std::istringstream packages(setup.substr(begin, setup.find(')', begin) - begin));
  int names = 0;
  for (std::string name; packages >> name; ++names)
    EXPECT_TRUE(std::regex_search(page, std::regex("[` ]" + name + "[` ]"))) << name;
  EXPECT_GT(names, 20);
}

TEST(Docs, AgreeWithTheProgramOnTheVersion) {
  const std::string sources = test::read_text(test::source_root() / "CMakeLists.txt"),
                    changes = test::read_text(test::source_root() / "CHANGELOG.md");
  std::smatch built, newest;
  ASSERT_TRUE(std::regex_search(sources, built, std::regex(R"(project\(tearless VERSION (\S+))")));
  ASSERT_TRUE(std::regex_search(changes, newest, std::regex(R"(\n## (\S+))")));
  EXPECT_EQ(built[1], newest[1]) << "CMakeLists.txt and CHANGELOG.md";
  EXPECT_TRUE(build_stamp().starts_with(built[1].str() + " (")) << build_stamp();
}

// Tables, code and generated pages have longer ones.
TEST(Docs, HaveLinesOfAtMost118Columns) {
  constexpr int64_t kMaxColumns = 118;
  for (const auto& entry : fs::directory_iterator(test::source_root() / "docs")) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".md" || name == "engine_settings.md" || name == "commands.md") continue;
    std::istringstream lines(test::read_text(entry.path()));
    bool code = false;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.find("```") != std::string::npos) code = !code;
      if (code || line.starts_with("|") || line.starts_with("    ")) continue;
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(columns, kMaxColumns) << name << ":" << number;
    }
  }
}

}  // namespace
}  // namespace tearless::docs_test
