// Markdown (GitHub's tables). It has one line of header, so the texts above a column are joined; lines of the header
// that the grid file adds are the first rows.
#include <fmt/format.h>

#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

std::vector<std::string> header_of(const Sheet& sheet) {
  std::vector<std::string> header(sheet.label_columns + sheet.columns());
  for (const HeaderLine& line : sheet.header) {
    if (line.kind != HeaderLine::Kind::kLabels) continue;
    const std::vector<Name> texts = line.one_a_column();
    const bool is_last = &line == &sheet.header.back();
    for (size_t i = 0; i < header.size(); ++i) {
      if (texts[i].text.empty() || (i < sheet.label_columns && !is_last)) continue;
      header[i] += (header[i].empty() ? "" : ", ") + texts[i].text;
    }
  }
  return header;
}

std::string markdown_cell(const Sheet::Row& row, size_t cell) {
  const auto [bold, rest] = Sheet::bold_and_rest(row, cell);
  return (bold.empty() ? "" : fmt::format("**{}**", markdown_text(bold))) + markdown_text(rest);
}

}  // namespace

std::string markdown_text(const std::string& text) {
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

std::string render_markdown(const Sheet& sheet) {
  const auto add = [](const std::vector<std::string>& texts) {
    return fmt::format("| {} |\n", join_escaped(texts, " | ", markdown_text));
  };
  const std::vector<std::string> header = header_of(sheet);
  std::string text = fmt::format("**{}**\n\n", markdown_text(sheet.title.text)) + add(header) + "|";
  for (size_t i = 0; i < header.size(); ++i) text += i < sheet.label_columns ? " --- |" : " ---: |";
  text += "\n";
  for (const HeaderLine& line : sheet.header) {
    std::vector<std::string> texts;
    for (const Name& name : line.one_a_column()) texts.push_back(name.text);
    if (line.kind == HeaderLine::Kind::kAdded) text += add(texts);
  }
  for (const Sheet::Row& row : sheet.rows) {
    text += "|";
    for (const Name& label : row.labels) text += fmt::format(" {} |", markdown_text(label.text));
    for (size_t i = 0; i < row.cells.size(); ++i) text += fmt::format(" {} |", markdown_cell(row, i));
    text += "\n";
  }
  text += "\n";
  for (const Name& note : sheet.notes) text += fmt::format("- {}\n", markdown_text(note.text));
  return text;
}

}  // namespace tearless::harness
