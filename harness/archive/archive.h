// An archive: the results of a workspace in one file, a gzipped tar (ustar) of the files below runs/ and sweeps/, and
// below artifact/, which `tearless artifact` writes. The same files give the same bytes: they are sorted, and have no
// owner and no time.
//
// A foreign archive can harm nothing: only plain files below these folders are unpacked, each once, and not more of
// them than results of its size can be.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace tearless::harness {

/// An archive is cut or damaged, or holds what no archive of results has.
class DamagedArchive : public UserError {
 public:
  using UserError::UserError;
};

/// True for a name that ends in .tar.gz.
bool has_archive_name(const std::filesystem::path& file);

/// The names of the files of a workspace that an archive has, relative to it, in the archive's order.
std::vector<std::string> archived_files(const std::filesystem::path& workspace);

/// The archive of the results in `workspace`. UserError for a file whose name does not fit.
std::string pack(const std::filesystem::path& workspace);

/// Unpacks into a folder, without fsync. DamagedArchive for what is cut or damaged, or holds something else; UserError
/// for what is no archive.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder);

}  // namespace tearless::harness
