// SIGTERM and SIGINT request a stop; the process then ends with kExitStopped (75). Before training begins it ends
// immediately; during training it writes a checkpoint first.
#pragma once

#include <exception>

namespace tearless::engine {

/// From now on a request ends the process immediately. For the time before training, when there is nothing to save.
void stop_at_once();
/// From now on a request sets a flag, which training polls; it then writes a checkpoint and ends.
void stop_with_checkpoint();
/// Whether a stop has been requested since stop_with_checkpoint().
bool stop_requested();

/// Thrown out of long work (an evaluation) when a stop has been requested.
class StopRequested : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped on request"; }
};
/// Throws StopRequested if a stop has been requested.
void throw_if_stopped();

}  // namespace tearless::engine
