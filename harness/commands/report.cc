// `tearless report --text PAGE.md`: a page of Markdown with tables, claims and figures.
#include <CLI/CLI.hpp>
#include <memory>

#include "harness/commands/commands.h"
#include "harness/commands/text_report.h"

namespace tearless::harness {
namespace {

struct ReportOptions : ViewOptions {
  std::filesystem::path text;
};

}  // namespace

Action command_report(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("what", options->words,
                 "of a page that is not there yet: a grid file as it is now, or a sweep (id, name, last)");
  app.add_option("--layout", options->layout,
                 "of such a page: lay the views of this grid file, as it is now, over the runs of the sweep")
      ->type_name("GRID");
  app.add_option("--text", options->text,
                 "a page of Markdown, in which <!-- tearless table SWEEP --> and <!-- end --> enclose a table; a page "
                 "that is not there is written first")
      ->type_name("PAGE.md")
      ->required();
  app.add_option("-o,--out", options->out, "write the page to this file, its figures beside it, and leave PAGE.md");
  return [options, &globals] { return text_report(options->text, *options, globals); };
}

}  // namespace tearless::harness
