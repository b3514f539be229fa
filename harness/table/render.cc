// The formats by name, and tables in them.
#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "harness/table/formats.h"
#include "harness/table/html.h"

namespace tearless::harness {
namespace {

struct Form {
  const char* name;
  std::string (*of_sheet)(const Sheet&, size_t width);  // for people, else null
  std::string (*of_text)(const std::string&);           // likewise
  std::string (*of_table)(const Table&, Formulas);      // for programs, else null
  std::array<std::string_view, 2> endings;              // of file names
};
// In the order of TableFormat.
constexpr Form kForms[] = {
    {"text", render_text, [](const std::string& text) { return printable(text); }, nullptr, {".txt", ""}},
    {"markdown",
     [](const Sheet& sheet, size_t) { return render_markdown(sheet); },
     markdown_text,
     nullptr,
     {".md", ".markdown"}},
    {"latex", [](const Sheet& sheet, size_t) { return render_latex(sheet); }, latex_text, nullptr, {".tex"}},
    {"html", [](const Sheet& sheet, size_t) { return render_html(sheet); }, escape_html, nullptr, {".html", ".htm"}},
    {"csv", nullptr, nullptr, render_csv, {".csv"}},
    {"json", nullptr, nullptr, [](const Table& table, Formulas) { return json_text(json_of(table)); }, {".json"}},
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
  const Form& form = kForms[static_cast<size_t>(format)];
  return form.of_table ? form.of_table(table, formulas) : form.of_sheet(sheet_of(table), width);
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

std::string text_in(TableFormat format, const std::string& text, const std::string& location) {
  const Form& form = kForms[static_cast<size_t>(format)];
  if (!form.of_text)
    fail("{}: --format {} is of whole tables; choose text, markdown, latex or html", location, form.name);
  return form.of_text(text);
}

std::string render(const std::vector<Sheet>& sheets, TableFormat format, size_t width) {
  const Form& form = kForms[static_cast<size_t>(format)];
  if (!form.of_sheet) fail("--format {} has no sheets; choose text, markdown, latex or html", form.name);
  std::string text;
  for (const Sheet& sheet : sheets) {
    if (!text.empty()) text += '\n';
    text += form.of_sheet(sheet, width);
  }
  return text;
}

}  // namespace tearless::harness
