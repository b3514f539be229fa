// `tearless log RUN`: what an attempt printed.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/lock_file.h"
#include "harness/commands.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

struct LogOptions {
  std::string run;
  bool follow = false;
  int64_t attempt = 0;
};

// By folder, not by database: a log can be read while that is lost, or not there yet.
std::string run_starting_with(const Workspace& workspace, const std::string& prefix) {
  std::vector<std::string> found;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(workspace.runs(), absent)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) found.push_back(name);
  }
  if (found.empty())
    fail("no run in {} begins with '{}'; `tearless status` lists them", workspace.runs().string(), prefix);
  if (found.size() > 1) fail("{} runs begin with '{}'; write more of the id", found.size(), prefix);
  return found[0];
}

int64_t chosen_attempt(const RunDirectory& run, int64_t asked) {
  const int64_t newest = run.newest_attempt();
  if (newest == 0) fail("{} has had no attempt yet", run.root().string());
  if (asked > newest) fail("{} has only {} attempts", run.root().string(), newest);
  return asked > 0 ? asked : newest;
}

// Copies the file from where it stands to its present end. False where nobody reads any more.
bool copy_rest(int fd) {
  char buffer[1 << 16];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
    if (::write(STDOUT_FILENO, buffer, static_cast<size_t>(n)) != n) return false;
  }
  return true;
}

int show(const LogOptions& options, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const RunDirectory run = workspace.run(run_starting_with(workspace, options.run));
  const int64_t attempt = chosen_attempt(run, options.attempt);
  const fs::path file = run.attempt(attempt) / "log.txt";
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("cannot read {}: {}", file.string(), std::strerror(errno));
  bool alive = true;
  while (copy_rest(fd) && options.follow && alive) {
    alive = attempt == run.newest_attempt() && LockFile::is_held(run.lock());  // then once more, for its last words
    if (alive) ::poll(nullptr, 0, 300);
  }
  ::close(fd);
  return kOk;
}

}  // namespace

Action command_log(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<LogOptions>();
  app.add_option("run", options->run, "the beginning of a run's id")->required();
  app.add_flag("-f,--follow", options->follow, "go on until the attempt ends");
  app.add_option("--attempt", options->attempt, "its number (otherwise the newest)")->check(CLI::PositiveNumber);
  return [options, &globals] { return show(*options, globals); };
}

}  // namespace tearless::harness
