#include "harness/commands/convert_svg.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "harness/children/child.h"

namespace tearless::harness {
namespace fs = std::filesystem;

void convert_svg(const std::string& svg, const char* format, const fs::path& file) {
  constexpr const char* kDotsPerInch = "300";
  const char* path = std::getenv("PATH");
  const std::string program = program_in(path ? path : "", "rsvg-convert");
  if (program.empty()) {
    fail(
        "PDF and PNG are made by rsvg-convert, which is not installed: apt-get install librsvg2-bin, or choose "
        "--format svg");
  }
  const fs::path temporary = file.parent_path() / fmt::format(".{}.{}.tmp", file.filename().string(), ::getpid());
  try {
    write_atomically(temporary, "");  // a folder that cannot be written is told of before the program runs
    std::optional<std::string> whole = svg;
    const int status = converse(
        {program, "--format", format, "--dpi-x", kDotsPerInch, "--dpi-y", kDotsPerInch, "--output", temporary},
        [&] { return std::exchange(whole, std::nullopt); }, [](std::string_view) {});
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || fs::file_size(temporary) == 0)
      fail("rsvg-convert could not make {}; its message is above, and --format svg needs no program", file.string());
    rename_file(temporary, file);
  } catch (...) {
    remove_file(temporary);
    throw;
  }
}

}  // namespace tearless::harness
