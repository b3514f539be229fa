// Starting another program.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace tearless::harness {

struct SpawnRequest {
  std::vector<std::string> arguments;                            // the program's path first
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to ours
  int standard_input = -1;                                       // a descriptor; -1: ours
  int standard_output = -1;                                      // likewise
  std::vector<int> blocked_signals = {};                         // it will take them when it is ready
  bool own_session = false;                                      // out of reach of the terminal's Ctrl-C and hang-up
};

/// The pid of the child, which is to be waited for. It starts with default signals. UserError where it cannot be
/// started.
pid_t spawn(const SpawnRequest& request);

}  // namespace tearless::harness
