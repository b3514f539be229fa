// `tearless wrap` is a program of the Python package, python/tearless/wrap.py. The package is looked for beside this
// program: in the environment in which that is installed, else in the source tree.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sys.h"
#include "harness/children/child.h"
#include "harness/commands/commands.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

std::string search_path() {
  const char* path = std::getenv("PATH");
  return path ? path : "";
}

}  // namespace

void be_on_path() {
  std::error_code unknown;
  const fs::path own = fs::read_symlink("/proc/self/exe", unknown);
  if (own.filename() != "tearless" || !program_in(search_path(), "tearless").empty()) return;
  ::setenv("PATH", (search_path() + ":" + own.parent_path().string()).c_str(), 1);
}

void become_wrap(char** words) {
  const fs::path root = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  std::vector<fs::path> places = {root.parent_path() / "python"};
  std::error_code missing;
  for (const fs::path& python : fs::directory_iterator(root / "lib", missing)) {
    for (const char* packages : {"site-packages", "dist-packages"}) places.push_back(python / packages);
  }
  std::erase_if(places, [](const fs::path& place) { return !fs::exists(place / "tearless/wrap.py"); });
  const std::string python = program_in(search_path(), "python3");
  if (places.empty()) fail("the Python package tearless is not beside this program; pip install tearless");
  if (python.empty()) fail("tearless wrap needs python3 on PATH");
  // The script's own Python does not see the package.
  const std::string code = "import sys; sys.path[0] = sys.argv.pop(1); from tearless.wrap import main; main()";
  std::vector<const char*> arguments = {python.c_str(), "-c", code.c_str(), places.front().c_str()};
  do arguments.push_back(*words);
  while (*words++);
  sys::execve(python.c_str(), const_cast<char* const*>(arguments.data()), environ);
  fail("{} cannot be started", python);
}

Action command_wrap(CLI::App& /*app*/, const Globals& /*globals*/) {
  return []() -> int { fail("tearless wrap has options of its own alone; write wrap first: tearless wrap --help"); };
}

}  // namespace tearless::harness
