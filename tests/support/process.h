// Real programs under test: run to the end, or started, watched and killed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tearless::test {

struct Command {
  std::vector<std::string> arguments;  // the program's path first
  std::map<std::string, std::string> environment = {};
  std::filesystem::path folder = {};  // to run in; empty: ours
};

struct Finished {
  int code = -1;       // 128 + signal where a signal ended it
  std::string output;  // standard output
  std::string errors;  // standard error
};

// Runs it to the end.
Finished run(const Command& command);

// A program in the background; killed (SIGKILL) and waited for at the end of the scope.
class Background {
 public:
  explicit Background(const Command& command);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t pid() const { return pid_; }
  // What it has printed to standard output so far.
  std::string output() const;
  void signal(int number) const;
  bool has_ended() const;
  Finished wait();

 private:
  std::filesystem::path captured_;  // a folder with its two outputs
  pid_t pid_ = -1;
  bool waited_ = false;
};

// Polls every few milliseconds until `holds` is true; false after a minute.
bool eventually(const std::function<bool()>& holds);

}  // namespace tearless::test
