#include "engine/derived/derived_kind.h"

#include "base/hash.h"
#include "engine/train/model_file.h"

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

std::pair<std::string, std::string> read_model_of(const DerivationSource& source, Task& task) {
  const std::filesystem::path model = read_finished_model(source.of, source.train, task);
  return {model.lexically_relative(source.of.root().parent_path()).string(), sha256_of_file(model)};
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
