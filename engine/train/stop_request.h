// SIGTERM and SIGINT as a flag: "checkpoint now, then exit 75".
#pragma once

#include <exception>

namespace tearless::engine {

/// From now on SIGTERM and SIGINT only set the flag.
void catch_stop_signals();
bool stop_requested();

/// Thrown out of long work (an evaluation) that gives up because a stop was asked for.
class StopRequested : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped on request"; }
};
/// Throws StopRequested where a stop was asked for.
void give_up_if_stopped();

}  // namespace tearless::engine
