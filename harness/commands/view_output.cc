#include "harness/commands/view_output.h"

#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "harness/commands/convert_svg.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

/// The file that is written where `out` is asked for: behind a symbolic link its target. UserError for what is there
/// and is no file: a device or a pipe would be replaced.
fs::path output_file(const fs::path& out) {
  fs::path file = fs::is_symlink(out) ? fs::weakly_canonical(out) : out;
  if (fs::exists(file) && !fs::is_regular_file(file)) fail("--out {}: it is there and is no file", out.string());
  return file;
}

}  // namespace

void write_files(const std::vector<ViewOutput>& outputs, const fs::path& from) {
  for (const ViewOutput& output : outputs) {
    for (const ViewOutput::File& file : output.files) {
      const fs::path folder = output_file(from / file.path).parent_path();
      if (output.folder.empty() && !folder.empty() && !fs::is_directory(folder))
        fail("--out {}: there is no folder {}", file.path.string(), folder.string());
    }
  }
  for (const ViewOutput& output : outputs) {
    if (!output.folder.empty()) make_folders(from / output.folder);
  }
  for (const ViewOutput& output : outputs) {
    for (const ViewOutput::File& file : output.files) {
      const fs::path path = output_file(from / file.path);
      if (file.made_of_svg) {
        convert_svg(file.bytes, file.made_of_svg, path);
      } else {
        write_atomically(path, file.bytes);
      }
    }
  }
}

Action printing(ViewMaker make, const Globals& globals) {
  return [make = std::move(make), &globals] {
    const ViewOutput output = make(globals);
    std::cout << output.text;
    write_files({output});
    return output.code;
  };
}

}  // namespace tearless::harness
