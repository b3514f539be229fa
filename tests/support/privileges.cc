#include "tests/support/privileges.h"

#include <unistd.h>

#include <stdexcept>

namespace tearless::test {

namespace {
constexpr uid_t kNobody = 65534;
}

WithoutRoot::WithoutRoot() : was_root_(::geteuid() == 0) {
  // The saved ids bring root back. The real ones change, too: the kernel lets nobody trace a program that starts with
  // two different ids, and LeakSanitizer fails in it. The group goes first, while it may.
  if (was_root_ && (::setresgid(kNobody, kNobody, 0) != 0 || ::setresuid(kNobody, kNobody, 0) != 0))
    throw std::runtime_error("cannot give up root");
}

WithoutRoot::~WithoutRoot() {
  // Never go on with half the rights.
  if (was_root_ && (::setresuid(0, 0, 0) != 0 || ::setresgid(0, 0, 0) != 0)) ::_exit(1);
}

}  // namespace tearless::test
