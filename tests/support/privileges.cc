#include "tests/support/privileges.h"

#include <unistd.h>

#include <stdexcept>

namespace tearless::test {

namespace {
constexpr uid_t kNobody = 65534;
}

WithoutRoot::WithoutRoot() : was_root_(::geteuid() == 0) {
  // Effective ids only: they decide file access, and the saved ones bring root back. The group goes first, while it
  // may.
  if (was_root_ && (::setegid(kNobody) != 0 || ::seteuid(kNobody) != 0))
    throw std::runtime_error("cannot give up root");
}

WithoutRoot::~WithoutRoot() {
  if (was_root_ && (::seteuid(0) != 0 || ::setegid(0) != 0)) ::_exit(1);  // never go on with half the rights
}

}  // namespace tearless::test
