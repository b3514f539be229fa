// What a run uses of a machine while it is trained.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/json_members.h"

namespace tearless::harness {

struct Needs {
  std::string device = "cpu";       // or "cuda"
  int threads = 1;                  // CPU threads; a run with more threads than cores takes all cores
  std::string resource_class = {};  // runs with the same text need the same memory and are equally fast; "": unknown
  std::optional<int64_t> memory_bytes = {};  // of the GPU for a run on "cuda", else of the machine; unset: not known
  bool declared = false;                     // memory_bytes is what the user said; else the training program's estimate
  bool alone = false;         // nothing else on the machine meanwhile; for a run on "cuda", nothing else on its GPU
  std::string executor = {};  // whose machines train it; "": this machine
  std::string kind = {};      // the GPU's or the processor's name that it must be, as in start.json; "": any
  std::set<std::string> secrets = {};  // of its environment, that a worker must have itself (environment.h)
  std::string first_of = {};  // the sweep whose first attempt is to decide `kind`; "": it is known, or any will do
  auto operator<=>(const Needs&) const = default;
};
TEARLESS_JSON(Needs, (device, threads, resource_class, declared, alone, executor), (memory_bytes, kind, secrets))

}  // namespace tearless::harness
