// A grid file as toml++ has it, for the sections that rooms above read. Slow to compile, as base/toml.h.
#pragma once

#include <string>

#include "base/toml.h"

namespace tearless::harness {

struct ParsedFile {
  toml::table root;
  std::string file;  // for messages
};

}  // namespace tearless::harness
