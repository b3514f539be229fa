// The input files of a run, as the training program named them when the run was planned (`data` in the answer of
// `check`, docs/run_directory.md).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_stamp.h"
#include "base/json_line.h"

namespace tearless::harness {

/// Absolute path → SHA-256 of the bytes that the run was planned with.
using InputFiles = std::map<std::string, std::string>;

/// The member `key`, an object, of a line of JSON. `last`: of an earlier line, which is shared if it is equal: of
/// 100,000 runs most read the same files. JsonLineError if the member is missing or of another form.
std::shared_ptr<const InputFiles> input_files_at(const JsonValue& line, std::string_view key,
                                                 const std::shared_ptr<const InputFiles>& last);

/// One sentence about the first file that is missing or is not what the run was planned with; "" if all are. Reads the
/// files: about a second for a gigabyte.
std::string fault_of(const InputFiles& files);

/// File → its stamp now; nullopt: there is no such file.
using FileStamps = std::map<std::string, std::optional<FileStamp>>;
FileStamps stamps_of(const InputFiles& files);

}  // namespace tearless::harness
