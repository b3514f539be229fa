// Progress messages of the functions that prepare data.
#pragma once

#include <functional>
#include <string>

namespace tearless::engine {

/// Receives messages, one sentence each, without a line feed.
using Say = std::function<void(const std::string&)>;

}  // namespace tearless::engine
