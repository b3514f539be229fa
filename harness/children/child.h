// Other programs as children of this one, by Boost.Process. Its headers are slow to compile: child.cc alone reads them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tearless::harness {

struct ChildRequest {
  std::vector<std::string> arguments;  // arguments[0] is the program's path
  /// Added to this process's environment, or replacing it; without a value: left out.
  std::map<std::string, std::optional<std::string>> environment = {};
  int standard_input = -1;                // a file descriptor; -1: inherited
  int standard_output = -1;               // a file descriptor; -1: inherited
  int standard_error = -1;                // a file descriptor; -1: inherited
  std::vector<int> blocked_signals = {};  // until the child unblocks or handles them
  bool closes_others = false;  // the child has no other descriptors of this process: it outlives whoever opened them
  bool own_session = false;    // setsid: Ctrl-C and hang-up of the terminal do not reach the child
};

/// Starts a child with default signal handlers and returns its pid. The caller must wait for it. MachineError if it
/// cannot be started.
pid_t spawn(const ChildRequest& request);

/// Runs a program to its end: sends it the lines that `next` returns until there is none, calls `on_line` with each
/// line of its answer, and returns its wait status. It is killed if `next` or `on_line` throws. MachineError if it
/// cannot be started.
int converse(std::vector<std::string> arguments, const std::function<std::optional<std::string>()>& next,
             const std::function<void(std::string_view)>& on_line);

struct Printed {
  std::string text;
  bool is_whole = false;  // it ended by itself, with exit code 0
};

/// What a program prints, of which nobody sees the errors. It is killed, with its own children, if it has not ended at
/// `deadline` or prints more than `max_bytes`. MachineError if it cannot be started.
Printed printed_by(ChildRequest request, size_t max_bytes, std::chrono::steady_clock::time_point deadline);

/// The path of a program in the folders of `path`, which is as the variable PATH; "" if there is none that may be run.
std::string program_in(const std::string& path, const std::string& program);

}  // namespace tearless::harness
