// Checks the #includes of every room against the dependencies that CMakeLists.txt declares. The compiler cannot check
// them: all rooms share one include root, and the headers of SQLite, Boost and others are visible everywhere.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace tearless::arrows_test {
namespace {

namespace fs = std::filesystem;
using Arrows = std::map<std::string, std::set<std::string>>;  // room -> the rooms that it may include

// The rooms of CMakeLists.txt, each with all the rooms that its DEPENDS reach (they are declared in that order).
Arrows declared_arrows() {
  const std::string text = test::read_text(test::source_root() / "CMakeLists.txt");
  static const std::regex kRoom(R"(tearless_room\((\S+)([^)]*)\))");
  Arrows arrows;
  for (std::sregex_iterator room(text.begin(), text.end(), kRoom), end; room != end; ++room) {
    std::set<std::string>& reached = arrows[(*room)[1]];
    std::istringstream words((*room)[2]);
    bool depends = false;
    for (std::string word; words >> word;) {
      if (word == "DEPENDS" || word == "LINK") {
        depends = word == "DEPENDS";
      } else if (depends) {
        EXPECT_TRUE(arrows.contains(word))
            << (*room)[1] << " depends on " << word << ", which is not declared above it";
        reached.insert(word);
        reached.insert(arrows[word].begin(), arrows[word].end());
      }
    }
  }
  static const std::regex kKernels(R"(tearless_isa_kernels\((\S+) INTO (\S+)\))");
  for (std::sregex_iterator kernels(text.begin(), text.end(), kKernels), end; kernels != end; ++kernels) {
    std::set<std::string>& reached = arrows[(*kernels)[1]];
    reached = arrows.at((*kernels)[2]);
    reached.insert((*kernels)[2]);
  }
  return arrows;
}

struct Include {
  std::string room, file, header;
  bool system;  // <header> rather than "header"
};

std::vector<Include> includes_of(const std::string& room) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  for (const auto& entry : fs::directory_iterator(test::source_root() / room)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    std::smatch match;
    for (std::string line; std::getline(in, line);) {
      if (std::regex_search(line, match, kInclude)) {
        includes.push_back({room, room + "/" + entry.path().filename().string(), match[2], match[1] == "<"});
      }
    }
  }
  return includes;
}

std::vector<Include> all_includes() {
  std::vector<Include> all;
  for (const auto& [room, reached] : declared_arrows()) {
    if (!fs::is_directory(test::source_root() / room)) continue;
    const std::vector<Include> found = includes_of(room);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

TEST(Arrows, EveryFolderOfSourcesIsADeclaredRoom) {
  const Arrows arrows = declared_arrows();
  ASSERT_TRUE(arrows.contains("base") && arrows.contains("harness/store"));  // the file was understood
  for (const char* tree : {"base", "engine", "harness"}) {
    if (!fs::is_directory(test::source_root() / tree)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(test::source_root() / tree)) {
      if (entry.path().extension() != ".cc") continue;
      const std::string room = fs::relative(entry.path().parent_path(), test::source_root()).string();
      EXPECT_TRUE(arrows.contains(room)) << entry.path() << " is in no room of CMakeLists.txt";
    }
  }
}

// The layout of docs/design.md: folder → what stands after ←. A folder that is indented is in the one above it.
Arrows drawn_arrows() {
  const std::string page = test::read_text(test::source_root() / "docs/design.md");
  const size_t begin = page.find("```\nbase/");
  std::istringstream lines(page.substr(begin, page.find("```", begin + 3) - begin));
  static const std::regex kFolder(R"(^( *)([a-z]+)/ )"), kWord(R"([a-z/]+)");
  Arrows arrows;
  std::vector<std::string> above;
  std::string room;
  for (std::string line; std::getline(lines, line);) {
    std::smatch folder;
    if (std::regex_search(line, folder, kFolder)) {
      above.resize(folder[1].length() / 2);
      room = (above.empty() ? "" : above.back() + "/") + folder[2].str();
      above.push_back(room);
      arrows[room];
    }
    const size_t arrow = line.find("←");
    const bool continues = arrow == std::string::npos && line.find_first_not_of(' ') > 60;  // arrows alone
    if (arrow == std::string::npos && !continues) continue;
    const std::string targets = line.substr(continues ? 0 : arrow);
    for (std::sregex_iterator word(targets.begin(), targets.end(), kWord), end; word != end; ++word)
      arrows[room].insert(word->str());
  }
  return arrows;
}

TEST(Arrows, TheDesignPageDrawsTheRoomsOfCMakeListsAndNoOtherArrows) {
  const Arrows declared = declared_arrows(), drawn = drawn_arrows();
  for (const auto& [room, reached] : declared) EXPECT_TRUE(drawn.contains(room)) << room << " is not in the layout";
  for (const auto& [room, targets] : drawn) {
    ASSERT_TRUE(declared.contains(room)) << "the layout has " << room;
    const std::string tree = room.substr(0, room.find('/')) + "/";
    for (const std::string& target : targets) {
      const std::set<std::string>& reached = declared.at(room);
      EXPECT_TRUE(reached.contains(target) || reached.contains(tree + target)) << room << " ← " << target;
    }
  }
}

TEST(Arrows, ARoomIncludesOnlyRoomsItDependsOn) {
  const Arrows arrows = declared_arrows();
  for (const Include& include : all_includes()) {
    if (include.system) continue;
    const std::string target = fs::path(include.header).parent_path().string();
    EXPECT_TRUE(target == include.room || arrows.at(include.room).contains(target))
        << include.file << " includes " << include.header << ", but " << include.room << " has no arrow to it";
  }
}

TEST(Arrows, EngineAndHarnessDoNotIncludeEachOther) {
  for (const auto& [room, reached] : declared_arrows()) {
    for (const std::string& other : reached) {
      EXPECT_FALSE(room.starts_with("engine") && other.starts_with("harness")) << room << " -> " << other;
      EXPECT_FALSE(room.starts_with("harness") && other.starts_with("engine")) << room << " -> " << other;
    }
  }
}

TEST(Arrows, LibrariesStayInTheirRooms) {
  struct Rule {
    const char* header;  // what an include starts with
    const char* rooms;   // the rooms that may have it
  };
  const Rule rules[] = {
      {"sqlite3.h", "harness/store"},
      {"SQLiteCpp/", "harness/store"},
      {"boost/asio", "harness/(children|launch|serve|service|worker)"},
      {"boost/beast", "harness/serve"},
      {"boost/process", "harness/children"},
      {"sentencepiece", "engine/data"},
      {"utf8proc", "engine/score"},
      {"CLI/", "engine|harness(/commands|/console|/serve)?"},
      {"cuda", "engine/cuda"},
      {"torch/torch.h", "nowhere"},  // 20 s a unit; the per-operation headers of ATen take 5
      {"ATen/ATen.h", "nowhere"},
      {"ATen/", "engine(/(ops|norm|model|analyse|data|decode|train|task|run|bench|cuda))?"},
      {"c10/", "engine(/(ops|norm|model|data|decode|train|task))?"},
      {"torch/", "engine(/(ops|cuda|norm|model|data|decode|train|task))?"},
  };
  for (const Include& include : all_includes()) {
    if (!include.system && fs::exists(test::source_root() / include.header)) continue;
    for (const Rule& rule : rules) {
      if (!include.header.starts_with(rule.header)) continue;
      EXPECT_TRUE(std::regex_match(include.room, std::regex(rule.rooms)))
          << include.file << " includes " << include.header;
      break;
    }
  }
}

}  // namespace
}  // namespace tearless::arrows_test
