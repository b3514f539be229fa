# Run at build time (cmake -P): writes the source of base/build_stamp.h, touching it only when the text changes.
execute_process(COMMAND git describe --always --dirty --abbrev=10 WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(commit)
  string(APPEND commit ", ")
endif()
if(WHEEL)
  string(APPEND BUILD_TYPE ", wheel ${WHEEL}")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include "base/build_stamp.h"

namespace tearless {

std::string_view build_stamp() { return "@VERSION@ (@commit@@COMPILER@, @BUILD_TYPE@)"; }

}  // namespace tearless
]])
