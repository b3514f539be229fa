// `tearless figure [GRID | SWEEP]`: draws the figures of a grid as it is now, or of a sweep as it was submitted, from
// the results that exist so far.
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
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

bool is_folder(const std::string& out) { return out.ends_with('/') || fs::is_directory(out); }

std::vector<const FigureFormat*> chosen_formats(const FigureOptions& options, const Globals& globals) {
  const FigureFormat* const json = &figure_format("json");
  if (options.format.empty()) {
    if (globals.json) return {json};
    if (is_folder(options.out)) fail("--out {}: a folder needs --format", options.out);
    return {options.out.empty() ? &figure_format("text") : &figure_format_of(options.out)};
  }
  std::vector<const FigureFormat*> formats;
  std::istringstream names(options.format);
  for (std::string name; std::getline(names, name, ',');) formats.push_back(&figure_format(name));
  if (globals.json && formats != std::vector{json})
    fail("--json and --format {} contradict each other; omit one of them", options.format);
  if (formats.size() > 1 && !is_folder(options.out))
    fail("--format {}: several formats need --out FOLDER/, for a file of each", options.format);
  return formats;
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

ViewOutput::File file_of(const Figure& figure, const FigureFormat& format, const PrintStyle& style,
                         const fs::path& file) {
  const bool is_seen_in_pages = format.is_picture && std::string_view(format.name) != "pdf";
  return {.path = file,
          .bytes = format.text({figure}, style),
          .made_of_svg = format.made_of_svg,
          .caption = is_seen_in_pages ? figure.title : Name()};
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

void notice_if_high(const Figure& figure, const FigureFormat& format) {
  constexpr double kPage = 229;  // mm: nine inches, the text of common styles
  const double height = format.height ? format.height(figure) : 0;
  if (height <= kPage) return;
  notice(
      fmt::format("the figure {} is about {:.0f} mm high, and a page {:.0f}: fewer panels, lines or notes, or a "
                  "width of the page, make it lower",
                  figure.name, height, kPage));
}

ViewOutput draw_figures(const FigureOptions& options, const Globals& globals) {
  const std::vector<const FigureFormat*> formats = chosen_formats(options, globals);
  require_csv(options.formulas, std::ranges::count(formats, &figure_format("csv")) > 0, "--format csv");
  const auto picture = std::ranges::find_if(formats, &FigureFormat::is_picture);
  if (picture != formats.end() && options.out.empty())
    fail("--format {}: a picture needs --out FILE, or --out FOLDER/ for one file a figure", (*picture)->name);
  const std::vector<Figure> figures = figures_of(options, globals);
  const PrintStyle style = {.columns = options.out.empty() ? terminal_size(stdout).columns : PrintStyle().columns,
                            .colour = options.out.empty() && has_colour(stdout),
                            .formulas = options.formulas};
  for (const Figure& figure : figures) {
    for (const FigureFormat* format : formats) notice_if_high(figure, *format);
  }
  if (is_folder(options.out)) {
    require_files_of_their_own(figures, options.out);
    ViewOutput output{.folder = options.out};
    for (const Figure& figure : figures) {
      for (const FigureFormat* format : formats)
        output.files.push_back(file_of(figure, *format, style, output.folder / (figure.name + format->ending)));
    }
    return output;
  }
  const FigureFormat& format = *formats.front();
  if (!format.is_picture) return options.output(format.text(figures, style));
  if (figures.size() > 1) {
    std::vector<std::string> names;
    for (const Figure& figure : figures) names.push_back(figure.name);
    fail("--out {}: there are {} figures; choose one with --only ({}), or write --out FOLDER/", options.out,
         figures.size(), fmt::join(names, ", "));
  }
  return {.files = {file_of(figures.front(), format, style, options.out)}};
}

}  // namespace

ViewMaker define_figure(CLI::App& app) {
  const auto options = std::make_shared<FigureOptions>();
  options->add_to(
      app,
      "text, csv, json, pgfplots, svg, pdf or png (default: by the ending of the file that --out names: "
      ".txt, .csv, .json, .tex, .svg, .pdf, .png; else text). rsvg-convert makes the last two. Several, separated by "
      "commas, make a file of each in the folder that --out names");
  app.add_option("--only", options->names, "draw the figures with these names alone")->type_name("NAME");
  return [options](const Globals& globals) { return draw_figures(*options, globals); };
}

Action command_figure(CLI::App& app, const Globals& globals) { return printing(define_figure(app), globals); }

}  // namespace tearless::harness
