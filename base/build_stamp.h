// The identity of this build, for --version, an attempt's start.json and the printed signature of a score. Never part
// of a run's id or of a result.
#pragma once

#include <string_view>

namespace tearless {

/// Version, commit (where the build knows it), compiler, build type, and the tag of the wheel that it was built for:
/// "0.1.0 (1a2b3c4, Clang 20.1.2, Release, wheel manylinux_2_28_x86_64)".
std::string_view build_stamp();

}  // namespace tearless
