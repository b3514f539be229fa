#include "tests/support/paths.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace fs = std::filesystem;

namespace tearless::test {

fs::path source_root() {
  if (const char* root = std::getenv("TEARLESS_SOURCE")) return root;
  return TEARLESS_SOURCE_ROOT;
}

fs::path program(std::string_view name) {
  const char* folder = std::getenv("TEARLESS_BIN");
  return (folder ? fs::path(folder) : fs::read_symlink("/proc/self/exe").parent_path()) / name;
}

fs::path shared_folder() {
  const char* named = std::getenv("TEARLESS_SHARED");
  const fs::path folder = named ? fs::path(named) : source_root().parent_path() / "shared";
  return fs::is_directory(folder) ? folder : fs::path();
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void write_text(const fs::path& file, std::string_view text) {
  if (file.has_parent_path()) fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text << std::flush;
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "tearless-test-XXXXXX").string();
  if (!::mkdtemp(name.data()))
    throw std::runtime_error("cannot make a folder in " + fs::temp_directory_path().string());
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace tearless::test
