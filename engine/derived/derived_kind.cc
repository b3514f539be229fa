#include "engine/derived/derived_kind.h"

#include "base/hash.h"

namespace tearless::engine {

#define DERIVED(kind) std::unique_ptr<DerivedKind> kind##_derived();
#include "engine/derived/derived_kinds.def"
#undef DERIVED

const Kinds<DerivedKind>& derived_kinds() {
#define DERIVED(kind) {#kind, kind##_derived},
  static const Kinds<DerivedKind> kinds{{
#include "engine/derived/derived_kinds.def"
  }};
#undef DERIVED
  return kinds;
}

std::string lines_sha256(const std::vector<std::string>& lines) {
  Sha256 hash;
  for (const std::string& line : lines) {
    hash.update(line);
    hash.update("\n");
  }
  return hash.hex();
}

}  // namespace tearless::engine
