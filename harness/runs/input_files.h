// The input files of a run, as the training program named them when the run was planned (`data` in the answer of
// `check`, docs/run_directory.md).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/file_stamp.h"

namespace tearless::harness {

/// Absolute path → SHA-256 of the bytes that the run was planned with.
using InputFiles = std::map<std::string, std::string>;

/// One sentence about the first file that is missing or is not what the run was planned with; "" if all are. Reads the
/// files: about a second for a gigabyte.
std::string fault_of(const InputFiles& files);

/// File → its stamp now; nullopt: there is no such file.
using FileStamps = std::map<std::string, std::optional<FileStamp>>;
FileStamps stamps_of(const InputFiles& files);

}  // namespace tearless::harness
