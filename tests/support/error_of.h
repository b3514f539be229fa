// The sentence with which something is refused.
#pragma once

#include <string>

#include "base/error.h"

namespace tearless::test {

/// The message of the Error that `action` throws, or "".
template <class Error = UserError, class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tearless::test
