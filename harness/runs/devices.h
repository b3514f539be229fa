// GPUs, for the rooms that start nothing on them.
#pragma once

#include <cstdint>
#include <string>

namespace tearless::harness {

/// A GPU, and what a launcher has reserved of it.
struct DeviceFacts {
  int index = 0;  // as in nvidia-smi; for messages only
  std::string uuid, name;
  int64_t memory_bytes = 0, reserved_bytes = 0;
  int64_t runs = 0;
  std::string closed;  // why it takes no run: "is used by process 4711"; "" if it does
};

}  // namespace tearless::harness
