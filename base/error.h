// How both programs say that something outside of them is wrong.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace tearless {

/// Bad input from outside: settings, files, folders, data. The text is one sentence that names the file, line or key
/// and says what to do; main() prints it as it is and maps the error to an exit code. What cannot happen is asserted
/// instead.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine failed, not what was asked of it: a full disk, an I/O error, no descriptors left. Trying again makes
/// sense once that is mended.
class MachineError : public UserError {
 public:
  using UserError::UserError;
};

/// Throws UserError with a formatted sentence.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) {
  throw UserError(fmt::format(sentence, std::forward<Args>(args)...));
}

/// Throws "cannot VERB PATH: what the system says", and what to do where that is known: a MachineError for an error
/// number that is the machine's fault, else a UserError.
[[noreturn]] void fail_errno(const char* verb, const std::filesystem::path& path, int error);
/// The same with errno.
[[noreturn]] void fail_errno(const char* verb, const std::filesystem::path& path);

}  // namespace tearless
