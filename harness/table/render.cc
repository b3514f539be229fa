// The formats by name, and tables in them.
#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

struct Options {
  Formulas formulas;
  size_t width;
};

struct Form {
  const char* name;
  std::string (*render)(const Table&, const Options&);
  std::array<std::string_view, 2> endings;  // of file names
};
// In the order of TableFormat.
constexpr Form kForms[] = {
    {"text", [](const Table& t, const Options& o) { return render_text(sheet_of(t), o.width); }, {".txt", ""}},
    {"markdown", [](const Table& t, const Options&) { return render_markdown(sheet_of(t)); }, {".md", ".markdown"}},
    {"latex", [](const Table& t, const Options&) { return render_latex(sheet_of(t)); }, {".tex"}},
    {"html", [](const Table& t, const Options&) { return render_html(sheet_of(t)); }, {".html", ".htm"}},
    {"csv", [](const Table& t, const Options& o) { return render_csv(t, o.formulas); }, {".csv"}},
    {"json", [](const Table& t, const Options&) { return json_text(json_of(t)); }, {".json"}},
};

}  // namespace

TableFormat table_format(const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kForms); ++i) {
    if (name == kForms[i].name) return static_cast<TableFormat>(i);
    names.push_back(kForms[i].name);
  }
  fail("--format {} is not known{}; it must be one of: {}", name, did_you_mean(name, names), fmt::join(names, ", "));
}

TableFormat table_format_of(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  std::vector<std::string_view> known;
  for (size_t i = 0; i < std::size(kForms); ++i) {
    for (const std::string_view of_form : kForms[i].endings) {
      if (ending == of_form) return static_cast<TableFormat>(i);
      if (!of_form.empty()) known.push_back(of_form);
    }
  }
  fail("--out {}: the ending {} stands for no format of tables; choose one of {}, or add --format", file.string(),
       ending, fmt::join(known, ", "));
}

std::string render(const Table& table, TableFormat format, Formulas formulas, size_t width) {
  return kForms[static_cast<size_t>(format)].render(table, {formulas, width});
}

std::string render(const std::vector<Table>& tables, TableFormat format, Formulas formulas, size_t width) {
  if (format == TableFormat::kJson && tables.size() > 1) {
    nlohmann::json all = nlohmann::json::array();
    for (const Table& table : tables) all.push_back(json_of(table));
    return json_text(all);
  }
  std::string text;
  for (const Table& table : tables) {
    if (!text.empty()) text += '\n';
    text += render(table, format, formulas, width);
  }
  return text;
}

}  // namespace tearless::harness
