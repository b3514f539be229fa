#include "engine/derived/derived_kind.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless::engine {

#define DERIVED(kind) std::unique_ptr<DerivedKind> kind##_derived();
#include "engine/derived/derived_kinds.def"
#undef DERIVED

std::vector<std::unique_ptr<DerivedKind>> make_derived_kinds() {
  std::vector<std::unique_ptr<DerivedKind>> kinds;
  const auto add = [&](std::string_view name, std::unique_ptr<DerivedKind> kind) {
    kind->name = name;
    kinds.push_back(std::move(kind));
  };
#define DERIVED(kind) add(#kind, kind##_derived());
#include "engine/derived/derived_kinds.def"
#undef DERIVED
  return kinds;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || c == '_' || c == '-');
  });
}

std::string read_result(const RunDirectory& run, const std::string& file) {
  const std::filesystem::path path = run.root() / file;
  const std::optional<Done> done = read_done(run);
  const std::string again = fmt::format("delete {} to make the run again", run.root().string());
  if (!done || !done->files.contains(file)) fail("{} is no result of its run; {}", path.string(), again);
  if (!std::filesystem::is_regular_file(path)) fail("{} is gone; restore it, or {}", path.string(), again);
  std::string bytes = read_file(path);
  if (sha256(bytes) != done->files.at(file)) {
    fail("{} was changed after the run ended; restore it, or {}", path.string(), again);
  }
  return bytes;
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
