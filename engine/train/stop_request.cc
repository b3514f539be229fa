#include "engine/train/stop_request.h"

#include <signal.h>

namespace tearless::engine {
namespace {

volatile sig_atomic_t stop_flag = 0;

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_flag = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

bool stop_requested() { return stop_flag != 0; }

void give_up_if_stopped() {
  if (stop_requested()) throw StopRequested();
}

}  // namespace tearless::engine
