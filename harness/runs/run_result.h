// What is known of one run, as tables and explanations want it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/runs/states.h"

namespace tearless::harness {

struct RunResult {
  std::string id = {};
  std::optional<RunState> state = {};         // nothing for a run the store has never heard of
  std::string reason = {};                    // one phrase: why it failed, is held, ended there; may be ""
  std::map<std::string, double> scores = {};  // final named numbers; empty before the run is done
  int64_t diverged_step = 0;  // the update of the first number that was not finite, where state is diverged
  bool stale = false;         // made by a program whose numerics version is no longer the current one
  bool mixed = false;         // its attempts ran on different kinds of processor or device
};

}  // namespace tearless::harness
