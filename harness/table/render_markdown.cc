// Markdown (GitHub's tables). It has one line of header, so the texts above a column are joined; lines of the header
// that the grid file adds are the first rows.
#include <fmt/format.h>

#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

std::string escape_markdown(const std::string& text) {
  return escaped(text, {{"\\", "\\\\"},
                        {"`", "\\`"},
                        {"|", "\\|"},
                        {"*", "\\*"},
                        {"_", "\\_"},
                        {"~", "\\~"},
                        {"$", "\\$"},
                        {"&", "&amp;"},
                        {"<", "&lt;"},
                        {"[", "\\["},
                        {"]", "\\]"}});
}

bool is_added(const Sheet& sheet, const std::vector<HeaderCell>& line) {
  const auto at = static_cast<size_t>(&line - sheet.header.data());
  return at >= sheet.first_added && at < sheet.first_added + sheet.added;
}

std::vector<std::string> header_of(const Sheet& sheet) {
  std::vector<std::string> header(sheet.label_columns + sheet.columns());
  for (const auto& line : sheet.header) {
    if (is_added(sheet, line) || &line == (sheet.name_above ? &sheet.header[*sheet.name_above] : nullptr)) continue;
    const std::vector<Name> texts = one_a_column(line);
    const bool is_last = &line == &sheet.header.back();
    for (size_t i = 0; i < header.size(); ++i) {
      if (texts[i].text.empty() || (i < sheet.label_columns && !is_last)) continue;
      header[i] += (header[i].empty() ? "" : ", ") + texts[i].text;
    }
  }
  return header;
}

}  // namespace

std::string render_markdown(const Sheet& sheet) {
  const auto add = [](const std::vector<std::string>& texts) {
    return fmt::format("| {} |\n", join_escaped(texts, " | ", escape_markdown));
  };
  const std::vector<std::string> header = header_of(sheet);
  std::string text = fmt::format("**{}**\n\n", escape_markdown(sheet.title)) + add(header) + "|";
  for (size_t i = 0; i < header.size(); ++i) text += i < sheet.label_columns ? " --- |" : " ---: |";
  text += "\n";
  for (const auto& line : sheet.header) {
    std::vector<std::string> texts;
    for (const Name& name : one_a_column(line)) texts.push_back(name.text);
    if (is_added(sheet, line)) text += add(texts);
  }
  for (const Sheet::Row& row : sheet.rows) {
    std::vector<std::string> line;
    for (const Name& label : row.labels) line.push_back(label.text);
    line.insert(line.end(), row.cells.begin(), row.cells.end());
    text += add(line);
  }
  text += "\n";
  for (const std::string& note : sheet.notes) text += fmt::format("- {}\n", escape_markdown(note));
  return text;
}

}  // namespace tearless::harness
