#include "engine/train/stop_request.h"

#include <signal.h>
#include <unistd.h>

#include "base/run_directory.h"

namespace tearless::engine {
namespace {

volatile sig_atomic_t stop_flag = 0;

void on_stop(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

// Async-signal-safe calls only: no destructors, no buffered output.
void stop_at_once() {
  on_stop([](int) { ::_exit(kExitStopped); });
}

void stop_with_checkpoint() {
  stop_flag = 0;
  on_stop([](int) { stop_flag = 1; });
}

bool stop_requested() { return stop_flag != 0; }

void throw_if_stopped() {
  if (stop_requested()) throw StopRequested();
}

}  // namespace tearless::engine
