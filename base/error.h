// Error types of both programs. Code throws UserError for anything wrong outside the process; a mistake in the code
// itself is a std::logic_error where it would give wrong results, and an assertion where it would crash.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace tearless {

/// Bad input from outside: settings, files, folders, data. The message is one sentence that names the file, line or key
/// and says what to do. main() prints it unchanged and maps the error to an exit code.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine failed, not the input: a full disk, an I/O error, no file descriptors left. The same command can succeed
/// once the cause is removed.
class MachineError : public UserError {
 public:
  using UserError::UserError;
};

/// Throws std::logic_error(otherwise) unless `holds`: for what callers must make sure of, where a mistake would give
/// wrong numbers. The programs are built with NDEBUG, so assert() would not notice.
inline void require(bool holds, const char* otherwise) {
  if (!holds) throw std::logic_error(otherwise);
}

/// Throws UserError with a formatted message.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) {
  throw UserError(fmt::format(sentence, std::forward<Args>(args)...));
}

/// Throws "cannot VERB PATH: strerror(error)", with advice where the cause is known. A MachineError for an errno that
/// is the machine's fault (ENOSPC, EIO, EMFILE …), else a UserError.
[[noreturn]] void fail_errno(const char* verb, const std::filesystem::path& path, int error);

/// As above, with the current errno.
[[noreturn]] void fail_errno(const char* verb, const std::filesystem::path& path);

}  // namespace tearless
