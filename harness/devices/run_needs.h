// What a run says of itself before it has run.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace tearless::harness {

struct RunNeeds {
  std::string device = "cpu";  // or "cuda"
  int threads = 1;             // CPU threads
  std::string shape = {};      // runs with the same text need the same memory and are equally fast; "": not known
  int64_t memory_bytes = 0;    // of the GPU for a run on "cuda", else of the machine; 0: not known
  bool declared = false;       // the user said so; else it is an estimate of the training program
  bool alone = false;          // nothing else on the machine meanwhile; for a run on "cuda", nothing else on its GPU
  auto operator<=>(const RunNeeds&) const = default;
};

}  // namespace tearless::harness
