// The raw files of a data set: which settings name them, whether they exist, their checksums, and their bytes. Used by
// every kind of data; knows nothing about what the files contain.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/settings.h"

namespace tearless::engine {

/// Receives progress messages of the functions that prepare data, one sentence each, without a line feed.
using Say = std::function<void(const std::string&)>;

/// What a file should be, for the message about a folder or a pipe in its place.
inline constexpr std::string_view kTextFile = "a text file with one sentence a line";
inline constexpr std::string_view kPlainText = "a plain text file";  // that is read symbol by symbol

/// A data file is missing, or is not the one that the run was planned with: the run can be trained once the file is
/// back (kExitData).
class DataError : public UserError {
 public:
  using UserError::UserError;
};

/// A setting that names files.
struct DataSetting {
  const char* key;                          // "data.train"
  std::string* path;                        // its value
  std::vector<std::string> endings = {""};  // the files are <path><ending>; {}: it names no file here
};

/// The files of train, dev or test.
struct DataSet {
  std::vector<DataSetting> settings;
  std::string* sha256;  // the setting that has files_sha256() of all of them; "" until it is known

  std::vector<std::string> files() const;
};

/// All files of a task's data. Borrows the settings that name them.
struct DataFiles {
  struct Required {
    const char* key;
    bool is_set;
  };
  std::string what;                       // for messages: "the corpus toy"
  std::string how_to_get = {};            // sentence shown when a file is missing
  std::vector<Required> required = {};    // checked before the paths: without these the files are not known
  std::string needs = {};                 // which those are, for the message
  std::vector<DataSet> sets = {};         // train, dev, test, as far as they have files of their own
  std::string_view expected = kTextFile;  // what each file should be

  /// A sentence that names the first missing file and says how to get it; "" if no file is missing. Throws UserError if
  /// a required setting is not set.
  std::string missing() const;
  /// Throws missing() as DataError, unless it is "".
  void require() const;
  bool has_checksums() const;
  /// Fills in the checksums of the files, which must exist. Cached as files_sha256() is, so that checking 100,000
  /// configurations reads a corpus once.
  void fingerprint() const;
  /// Throws DataError if the files of a set exist and do not match its checksum. Sets with missing files are skipped.
  void verify() const;
  /// Before training: verify() where all checksums are known, else require() and fingerprint().
  void check() const;
  /// What the beginnings of text files look like if that is text which another tool has coded (looks_coded()), a
  /// sentence each, without the folders of the files. REQUIRES: they exist.
  std::vector<std::string> doubts() const;
};

/// "the corpus toy", of a noun and a name that may be "".
std::string named(std::string_view noun, const std::string& name);

// The settings that every kind of data has.

/// The name: part of a run's identity until its files have checksums; the identity is provisional until then.
Field name_field(const char* meaning, bool has_checksums);
/// A path, or another setting of where the files are.
Field path_field(const char* key, const char* meaning, std::string_view switched_off_by = {});
Field checksum_field(const char* key, const char* meaning, std::string_view switched_off_by = {});

/// One checksum for `files`: the SHA-256 of a single file; of several the SHA-256 of their SHA-256s with a space
/// between two. Cached in the process while a file's stamp (base/file_stamp.h) stays the same. Throws UserError
/// for a file that cannot be read or is not a regular one; `expected` says what to put there.
std::string files_sha256(std::span<const std::string> files, std::string_view expected = kTextFile);

/// Throws UserError for the first bytes of a file that is compressed: by gzip, xz, zstd, bzip2 or zip.
void refuse_compressed(std::string_view bytes, const std::string& file);

/// The first bytes of a file, at most `bytes` of them, and its size. Cached as files_sha256() is. Throws UserError if
/// it cannot be read. REQUIRES: it is a regular file, as files_sha256() makes sure.
struct FileStart {
  std::string bytes;
  int64_t file_size = 0;
};
FileStart read_start(const std::string& file, int64_t bytes);

/// The bytes of each file of a set. Throws UserError for a compressed file, and DataError if they do not match the
/// checksum of the set, unless that is "".
std::vector<std::string> read_files(const DataSet& set);

}  // namespace tearless::engine
