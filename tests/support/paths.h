// Paths for tests: the source tree, the built programs, the shared data, and a temporary folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tearless::test {

// The root of the source tree; ctest sets TEARLESS_SOURCE, by hand the path at build time serves.
std::filesystem::path source_root();

/// A built program, e.g. program("tearless-engine"): in the folder TEARLESS_BIN, which ctest sets, else beside the
/// running test.
std::filesystem::path program(std::string_view name);

// The folder of corpora that are not in the repository: $TEARLESS_SHARED, else ../shared beside the source tree. Empty
// when absent.
std::filesystem::path shared_folder();

// Whole contents of a file, and back; a failure throws.
std::string read_text(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, std::string_view text);

// A folder of its own, removed with everything in it at the end of the scope.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace tearless::test

// Ends the test as skipped, with the reason, where a corpus of the shared folder is absent.
#define TEARLESS_NEEDS_SHARED(file)                                         \
  if (::tearless::test::shared_folder().empty() ||                          \
      !std::filesystem::exists(::tearless::test::shared_folder() / (file))) \
  GTEST_SKIP() << "needs " << (file) << " in $TEARLESS_SHARED or ../shared"
