#include "harness/commands/gnuplot.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/children/child.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr const char* kGnuplot = "gnuplot";

fs::path gnuplot_program() {
  const char* path = std::getenv("PATH");
  std::string folders = path ? path : "";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path program = fs::path(folders.substr(begin, end - begin)) / kGnuplot;
    if (fs::is_regular_file(program) && ::access(program.c_str(), X_OK) == 0) return program;
    begin = end + 1;
  }
  fail(
      "pictures are drawn by gnuplot, which is not installed: apt-get install gnuplot-nox, or choose --format text, "
      "csv "
      "or pgfplots");
}

/// Gives the script to gnuplot. UserError with what it says if it fails.
void run_gnuplot(const std::string& script) {
  const std::vector<std::string_view> lines = split_lines(script);
  size_t next = 0;
  const auto next_line = [&] { return next < lines.size() ? std::optional(std::string(lines[next++])) : std::nullopt; };
  // Without the user's own settings: the same figure has the same picture.
  const int status = converse({gnuplot_program(), "-d", "-"}, next_line, [](std::string_view) {});
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail("gnuplot could not draw the picture; its message is above, and --format csv has the numbers");
}

}  // namespace

void draw_picture(const Figure& figure, Picture kind, const fs::path& file) {
  const fs::path temporary = file.parent_path() / fmt::format(".{}.{}.tmp", file.filename().string(), ::getpid());
  const fs::path script = file.string() + ".gnuplot";
  try {
    write_atomically(temporary, "");  // a folder that cannot be written is told of before gnuplot runs
    run_gnuplot(gnuplot_script(figure, kind, temporary.string()));
    if (fs::file_size(temporary) == 0) fail("gnuplot has drawn nothing for {}", file.string());
    rename_file(temporary, file);
    write_atomically(script, gnuplot_script(figure, kind, file.filename().string()));
  } catch (...) {
    remove_file(temporary);
    throw;
  }
}

}  // namespace tearless::harness
