// How long work reports its progress.
#pragma once

#include <functional>
#include <string>

namespace tearless {

/// Receives progress messages, one line each without its end.
using Say = std::function<void(const std::string&)>;

}  // namespace tearless
