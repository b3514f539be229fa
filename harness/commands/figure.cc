// `tearless figure [GRID | SWEEP]`: draws the figures of a grid as it is now, or of a sweep as it was submitted, from
// the results that exist so far.
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/convert_svg.h"
#include "harness/commands/printed_views.h"
#include "harness/commands/table_options.h"
#include "harness/console/csv_option.h"
#include "harness/console/screen.h"
#include "harness/figure/format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

struct FigureOptions : ViewOptions {
  std::vector<std::string> names;  // of the figures to draw; empty: all
};

const FigureFormat& chosen_format(const FigureOptions& options) {
  const bool is_folder = options.out.ends_with('/') || fs::is_directory(options.out);
  if (!options.format.empty()) return figure_format(options.format);
  if (options.out.empty()) return figure_format("text");
  if (is_folder) fail("--out {}: a folder needs --format", options.out);
  return figure_format_of(options.out);
}

/// Those that are asked for, in the order of the grid files. A figure without a name has that of its number.
std::vector<Figure> figures_of(const FigureOptions& options, const Globals& globals) {
  std::vector<Figure> figures;
  std::vector<std::string> known;
  std::vector<GridState> states = options.states(globals);
  const auto is_wanted = [&](const std::string& name) {
    return options.names.empty() || std::ranges::find(options.names, name) != options.names.end();
  };
  for (GridState& state : states) {
    const std::vector<std::string> names = names_of_figures(state, known.size());
    std::ranges::move(figures_of(state, names, /*has_scores=*/false, is_wanted), std::back_inserter(figures));
    known.insert(known.end(), names.begin(), names.end());
  }
  if (known.empty()) {
    fail(
        "{} has no figure: a grid file has them in sections [[figure]] (docs/figures.md); `tearless plot` draws "
        "metrics without one",
        states.front().grid.file.string());
  }
  for (const std::string& name : options.names) {
    if (std::ranges::find(known, name) == known.end())
      fail("--only {}: there is no such figure{}; there are: {}", name, did_you_mean(name, known),
           fmt::join(known, ", "));
  }
  return figures;
}

void write_figure(const Figure& figure, const FigureFormat& format, const PrintStyle& style, const fs::path& file) {
  const std::string text = format.text({figure}, style);
  if (format.made_of_svg) {
    convert_svg(text, format.made_of_svg, output_file(file));
  } else {
    write_atomically(output_file(file), text);
  }
}

/// One would replace the file of another: of another grid file, or one that has a number for a name.
void require_files_of_their_own(const std::vector<Figure>& figures, const std::string& folder) {
  std::set<std::string> names;
  for (const Figure& figure : figures) {
    if (names.insert(figure.name).second) continue;
    fail("--out {}: two figures are called {} and would be one file; give each a name = \"…\" of its own", folder,
         figure.name);
  }
}

int print_figures(const FigureOptions& options, const Globals& globals) {
  const FigureFormat& format = chosen_format(options);
  require_csv(options.formulas, std::string_view(format.name) == "csv", "--format csv");
  if (format.is_picture && options.out.empty())
    fail("--format {}: a picture needs --out FILE, or --out FOLDER/ for one file a figure", format.name);
  const std::vector<Figure> figures = figures_of(options, globals);
  const PrintStyle style = {.columns = options.out.empty() ? terminal_size(stdout).columns : PrintStyle().columns,
                            .colour = options.out.empty() && has_colour(stdout),
                            .formulas = options.formulas};
  for (const Figure& figure : figures) {
    constexpr double kPage = 229;  // mm: nine inches, the text of common styles
    const double height = format.height ? format.height(figure) : 0;
    if (height > kPage)
      notice(
          fmt::format("the figure {} is about {:.0f} mm high, and a page {:.0f}: fewer panels, lines or notes, or a "
                      "width of the page, make it lower",
                      figure.name, height, kPage));
  }
  const fs::path out = options.out;
  if (options.out.ends_with('/') || fs::is_directory(out)) {
    require_files_of_their_own(figures, options.out);
    make_folders(out);
    for (const Figure& figure : figures) write_figure(figure, format, style, out / (figure.name + format.ending));
  } else if (format.is_picture) {
    if (figures.size() > 1) {
      std::vector<std::string> names;
      for (const Figure& figure : figures) names.push_back(figure.name);
      fail("--out {}: there are {} figures; choose one with --only ({}), or write --out FOLDER/", options.out,
           figures.size(), fmt::join(names, ", "));
    }
    write_figure(figures.front(), format, style, out);
  } else {
    options.write(format.text(figures, style));
  }
  return kOk;
}

}  // namespace

Action command_figure(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<FigureOptions>();
  options->add_to(app,
                  "text, csv, pgfplots, svg, pdf or png (default: by the ending of the file that --out names: .txt, "
                  ".csv, .tex, .svg, .pdf, .png; else text). rsvg-convert makes the last two");
  app.add_option("--only", options->names, "draw the figures with these names alone")->type_name("NAME");
  return [options, &globals] { return print_figures(*options, globals); };
}

}  // namespace tearless::harness
