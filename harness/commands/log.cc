// `tearless log RUN…`: prints the output of an attempt.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/omitted.h"
#include "base/print.h"
#include "base/utf8.h"
#include "harness/commands/commands.h"
#include "harness/commands/texts.h"
#include "harness/console/number_option.h"
#include "harness/plan/grid_state.h"
#include "harness/runs/launcher.h"
#include "harness/runs/workspace.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

struct LogOptions {
  std::vector<std::string> words;
  bool follow = false;
  int64_t attempt = 0;
};

std::vector<std::string> folders_starting_with(const std::string& prefix, const Workspace& workspace) {
  std::vector<std::string> found = folders_in(workspace.runs());
  std::erase_if(found, [&](const std::string& name) { return !name.starts_with(prefix); });
  return found;
}

// Logs can be read without a database, too: a single word may then be the beginning of a run folder's name.
std::string the_run(const std::vector<std::string>& words, const Globals& globals) {
  try {
    return one_run(*require_store(globals), words);
  } catch (const UserError&) {
    if (words.size() > 1) throw;
    const std::vector<std::string> folders = folders_starting_with(words[0], Workspace(globals.workspace));
    if (folders.size() != 1) throw;
    return folders.front();
  }
}

int64_t chosen_attempt(const RunDirectory& run, int64_t asked) {
  const int64_t newest = run.newest_attempt();
  if (newest == 0) fail("{} has no attempt yet", run.root().string());
  if (asked > newest) fail("{} has only {} attempts", run.root().string(), newest);
  return asked > 0 ? asked : newest;
}

/// Prints a file that may still grow, with terminal escapes made printable.
class Printer {
 public:
  explicit Printer(int fd) : fd_(fd) {}

  /// Prints the complete lines up to the current end of the file. False if standard output is closed.
  bool print_lines() {
    char buffer[1 << 16];
    for (ssize_t n; (n = ::read(fd_, buffer, sizeof buffer)) > 0;) {
      torn_.append(buffer, static_cast<size_t>(n));
      const size_t end = torn_.find_last_of("\r\n") + 1;  // the rest may end within a UTF-8 character
      if (!write(std::string_view(torn_).substr(0, end))) return false;
      torn_.erase(0, end);
    }
    return true;
  }
  /// Prints what follows the last complete line.
  void print_rest() { write(torn_); }

 private:
  static bool write(std::string_view text) {
    const std::string shown = printable_lines(text);
    return std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0;
  }

  int fd_;
  std::string torn_;  // read, but not printed yet: an incomplete line
};

/// Opens the log of an attempt.
int open_log(const RunDirectory& run, int64_t attempt) {
  const fs::path file = run.attempt(attempt) / "log.txt";
  require_here(run, file.lexically_relative(run.root()).string());
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("cannot read {}: {}", file.string(), std::strerror(errno));
  return fd;
}

int show(const LogOptions& options, const Globals& globals) {
  if (globals.json && options.follow) fail("--json and --follow contradict each other; omit one of them");
  const RunDirectory run = Workspace(globals.workspace).run(the_run(options.words, globals));
  const int64_t attempt = chosen_attempt(run, options.attempt);
  if (globals.json) {
    print_json({{"run", run.root().filename().string()},
                {"attempt", attempt},
                {"text", end_of_log(run, attempt, std::numeric_limits<size_t>::max())}});
    return kOk;
  }
  const int fd = open_log(run, attempt);
  Printer printer(fd);
  bool alive = true;
  while (printer.print_lines() && options.follow && alive) {
    alive = attempt == run.newest_attempt() && is_alive(run);  // if not, print its last lines and stop
    if (alive) ::poll(nullptr, 0, 300);
  }
  printer.print_rest();
  ::close(fd);
  return kOk;
}

}  // namespace

std::string end_of_log(const RunDirectory& run, int64_t attempt, size_t bytes) {
  const int fd = open_log(run, chosen_attempt(run, attempt));
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const bool is_cut = std::cmp_greater(size, bytes);
  std::string text(is_cut ? bytes : static_cast<size_t>(std::max<off_t>(size, 0)), '\0');
  const ssize_t read = ::pread(fd, text.data(), text.size(), is_cut ? size - static_cast<off_t>(bytes) : 0);
  ::close(fd);
  text.resize(read > 0 ? static_cast<size_t>(read) : 0);
  if (is_cut) text.erase(0, text.find('\n') + 1);  // it may begin within a UTF-8 character
  return printable_lines(text);
}

Action command_log(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<LogOptions>();
  app.add_option("what", options->words,
                 "a run: its id, or other words that mean only one (places, states, axis=label)")
      ->required();
  app.add_flag("-f,--follow", options->follow, "print new output until the attempt ends");
  app.add_option("--attempt", options->attempt, "number of the attempt (default: the newest)")
      ->check(whole_number_from(1));
  return [options, &globals] { return show(*options, globals); };
}

}  // namespace tearless::harness
