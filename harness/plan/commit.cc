#include "harness/plan/commit.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "harness/children/child.h"
#include "harness/grid/packaged.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxDiff = 1 << 20;          // bytes
constexpr std::chrono::seconds kPatience{5};  // for all that git is asked about one grid

// What a shell inside of a hook of another repository sets.
constexpr const char* kOfOtherRepositories[] = {
    "GIT_DIR",       "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE", "GIT_PREFIX",    "GIT_COMMON_DIR", "GIT_DIFF_OPTS",        "GIT_EXTERNAL_DIFF"};

class Git {
 public:
  Git(std::string program, std::string folder) : program_(std::move(program)), folder_(std::move(folder)) {
    for (const char* name : kOfOtherRepositories) environment_[name] = std::nullopt;
    environment_["GIT_OPTIONAL_LOCKS"] = "0";
    environment_["GIT_LITERAL_PATHSPECS"] = "1";
    environment_["GIT_TERMINAL_PROMPT"] = "0";
    environment_["GIT_NO_LAZY_FETCH"] = "1";
    environment_["GIT_ALLOW_PROTOCOL"] = "none";
    if (const char* const count = std::getenv("GIT_CONFIG_COUNT")) settings_ = std::max(0, std::atoi(count));
    set("core.fsmonitor", "false");
    set("core.hooksPath", "/dev/null");
    set("safe.bareRepository", "explicit");
  }

  // As GIT_CONFIG_*, since with -c a name may have no "=".
  void set(std::string_view name, const char* value) {
    environment_["GIT_CONFIG_KEY_" + std::to_string(settings_)] = name;
    environment_["GIT_CONFIG_VALUE_" + std::to_string(settings_)] = value;
    environment_["GIT_CONFIG_COUNT"] = std::to_string(++settings_);
  }

  Printed ask(std::vector<std::string> words) const {
    words.insert(words.begin(), {program_, "--no-pager", "-C", folder_});
    return printed_by({.arguments = std::move(words), .environment = environment_}, kMaxDiff, deadline_);
  }

 private:
  std::string program_, folder_;
  std::map<std::string, std::optional<std::string>> environment_;
  int settings_ = 0;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + kPatience;
};

// Takes the commands of filters away that the repository's own configuration names. False if git does not say them.
bool take_filters_away(Git& git) {
  const Printed config = git.ask({"config", "-z", "--show-scope", "--name-only", "--list"});
  std::string_view rest = config.text;
  const auto next = [&rest] {
    const std::string_view word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    return word;
  };
  while (!rest.empty()) {
    const std::string_view scope = next(), name = next();
    if (name.starts_with("filter.") && (scope == "local" || scope == "worktree")) git.set(name, "");
  }
  return config.is_whole;
}

void add_diff(Git& git, GridCommit& commit) {
  if (!take_filters_away(git)) return;
  // Unlike `git diff` it never writes the index, and heeds no settings of how a person likes diffs to look.
  Printed diff = git.ask({"diff-index", "-p", "-M", "--no-ext-diff", "--no-textconv", "--full-index",
                          "--submodule=short", "--ignore-submodules=dirty", "HEAD", "--"});
  const bool is_too_large = diff.text.size() > kMaxDiff;
  if (!diff.is_whole && !is_too_large) return;
  commit.record["clean"] = diff.text.empty();
  if (is_too_large || diff.text.empty()) return;
  const int64_t lines = std::ranges::count(diff.text, '\n') + (diff.text.ends_with('\n') ? 0 : 1);
  commit.record["diff"] = {{"sha256", sha256(diff.text)}, {"lines", lines}};
  commit.diff = std::move(diff.text);
}

GridCommit commit_said_by(const std::string& program, const fs::path& file) {
  Git git(program, file.parent_path());
  const std::string name = file.filename();
  const Printed listed = git.ask({"ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", "--", name});
  if (!listed.is_whole || listed.text.empty()) return {};  // empty: it is ignored
  const bool is_tracked = !listed.text.starts_with('?');
  if (!is_tracked && packaged_grid(file.stem()) == file) return {};
  Printed id = git.ask({"rev-parse", "--verify", "--quiet", "HEAD^{commit}"});
  if (!id.is_whole || id.text.empty()) return {};
  id.text.pop_back();  // the end of its line
  GridCommit commit{.record = {{"id", id.text}, {"tracked", is_tracked}}};
  add_diff(git, commit);
  return commit;
}

}  // namespace

GridCommit commit_holding(const fs::path& grid_file) {
  const char* const path = std::getenv("PATH");
  const std::string program = program_in(path ? path : "", "git");
  std::error_code unreachable;
  const fs::path file = fs::canonical(grid_file, unreachable);
  if (program.empty() || unreachable) return {};
  static bool is_slow = false;  // then a list of grids does not wait for each
  const auto begin = std::chrono::steady_clock::now();
  GridCommit commit;
  try {
    if (!is_slow) commit = commit_said_by(program, file);
  } catch (const UserError&) {  // git cannot be started
  }
  is_slow |= std::chrono::steady_clock::now() - begin >= kPatience;
  return commit;
}

}  // namespace tearless::harness
