// SIGTERM and SIGINT: a request to stop, which ends the process with exit code 75. What that takes depends on what is
// at stake.
#pragma once

#include <exception>

namespace tearless::engine {

/// From now on a request ends the process at once: before training begins there is nothing to save.
void stop_at_once();
/// From now on a request only sets a flag, which training looks at: a checkpoint comes first.
void stop_with_checkpoint();
bool stop_requested();

/// Thrown out of long work (an evaluation) that gives up because a stop was asked for.
class StopRequested : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped on request"; }
};
/// Throws StopRequested where a stop was asked for.
void give_up_if_stopped();

}  // namespace tearless::engine
