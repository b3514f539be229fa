// Starts another program (posix_spawn).
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace tearless {

struct SpawnRequest {
  std::vector<std::string> arguments;                            // arguments[0] is the program's path
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's environment, or replacing it
  int standard_input = -1;                                       // a file descriptor; -1: inherited
  int standard_output = -1;                                      // a file descriptor; -1: inherited
  int standard_error = -1;                                       // a file descriptor; -1: inherited
  std::vector<int> blocked_signals = {};                         // blocked until the child unblocks or handles them
  bool closes_others = false;  // the child has no other descriptors of this process: it outlives whoever opened them
  bool own_session = false;    // setsid: Ctrl-C and hang-up of the terminal do not reach the child
};

/// Starts a child with default signal handlers and returns its pid. The caller must wait for it. MachineError if it
/// cannot be started.
pid_t spawn(const SpawnRequest& request);

}  // namespace tearless
