#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace tearless {
namespace {

bool is_of_the_machine(int error) {
  for (const int one : {ENOSPC, EDQUOT, EIO, EROFS, EMFILE, ENFILE, ENOMEM, ESTALE, ENODEV, ENXIO}) {
    if (error == one) return true;
  }
  return false;
}

}  // namespace

void fail_errno(const char* verb, const std::filesystem::path& path) { fail_errno(verb, path, errno); }

void fail_errno(const char* verb, const std::filesystem::path& path, int error) {
  const char* hint = error == ENOSPC || error == EDQUOT ? "; free some space and try again"
                     : error == EACCES                  ? "; check the folder's permissions"
                     : error == EROFS                   ? "; choose a folder that can be written (--workspace)"
                     : error == ELOOP                   ? "; a symbolic link there leads back to itself: remove it"
                                                        : "";
  const std::string sentence = fmt::format("cannot {} {}: {}{}", verb, path.string(), std::strerror(error), hint);
  if (is_of_the_machine(error)) throw MachineError(sentence);
  throw UserError(sentence);
}

}  // namespace tearless
