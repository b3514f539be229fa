// What a copy of results alone (`tearless copy --results`) lacks of a run directory: the sealed file omitted.json lists
// the files that were left out, {"run": id, "files": {name: {"sha256": …, "bytes": N}, …}}. A result file that it lists
// with the checksum that DONE has is not missing; a file that is there is compared with DONE as in any run.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/run_directory.h"

namespace tearless {

struct OmittedFile {
  std::string sha256;
  int64_t bytes = 0;
};
/// File, relative to the run directory → what it was.
using Omitted = std::map<std::string, OmittedFile>;

/// Empty if the run has no omitted.json. UserError if that was edited or is damaged, or belongs to another run.
Omitted read_omitted(const RunDirectory& run);

/// Writes the omitted.json of `run` into a folder, its copy.
void write_omitted(const RunDirectory& run, const Omitted& omitted, const std::filesystem::path& copy);

/// Whether omitted.json lists a file, and it is not there.
bool is_omitted(const RunDirectory& run, const std::string& name);
/// UserError for such a file.
void require_here(const RunDirectory& run, const std::string& name);

}  // namespace tearless
