// What the commands `table`, `check-table`, `figure` and `cost` make, before any of it is printed or written: a page of
// text (text_report.h) puts it elsewhere.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/check/check.h"
#include "harness/commands/commands.h"
#include "harness/console/globals.h"
#include "harness/table/table.h"

namespace tearless::harness {

struct ViewOutput {
  struct File {
    std::filesystem::path path;
    std::string bytes;
    const char* made_of_svg = nullptr;  // FigureFormat
    Name caption = {};                  // of the figure that it is a picture of; "": it is none
  };

  std::string text = {};              // for standard output
  std::filesystem::path folder = {};  // is made if it is not there; "": none
  std::vector<File> files = {};
  std::vector<Table> tables = {};       // that `text` or a file has
  std::vector<GridChecks> checks = {};  // likewise
  bool lacks_value = false;             // it is of one cell, which is "div.", "–" …
  int code = kOk;
};

/// Makes the output of a command after its words were parsed.
using ViewMaker = std::function<ViewOutput(const Globals&)>;

/// Each declares a command's options on `app`.
ViewMaker define_table(CLI::App& app);
ViewMaker define_check_table(CLI::App& app);
ViewMaker define_cost(CLI::App& app);
ViewMaker define_figure(CLI::App& app);

/// Writes the files of all, in their order; relative paths are from `from`. UserError, with nothing written, where
/// something is there that is no file, or the folder is not there; any other leaves the files after it as they were.
void write_files(const std::vector<ViewOutput>& outputs, const std::filesystem::path& from = {});

/// The action that makes the output, prints its text and writes its files.
Action printing(ViewMaker make, const Globals& globals);

}  // namespace tearless::harness
