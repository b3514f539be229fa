#include "harness/grid/names.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/utf8.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

/// Why LaTeX would not print `latex` in a cell of a table; "" if it would.
std::string fault_of(const std::string& latex) {
  if (printable(latex) != latex) return "has a control character or a line break";
  int braces = 0;
  bool in_math = false;
  for (size_t at = 0; at < latex.size(); ++at) {
    switch (latex[at]) {
      case '\\':
        if (++at == latex.size()) return "ends in a \\ without its command";
        if (latex[at] == '\\') return "has a line break, \\\\";
        break;
      case '{':
        ++braces;
        break;
      case '}':
        if (--braces < 0) return "has a } without its {";
        break;
      case '$':
        in_math = !in_math;
        if (latex.substr(at, 2) == "$$") return "has $$, which begins a paragraph of its own";
        break;
      case '_':
      case '^':
        if (!in_math) return fmt::format("has a bare {} outside of $…$", latex[at]);
        break;
      case '&':
      case '%':
      case '#':
        return fmt::format("has a bare {0}; write \\{0}", latex[at]);
      default:
        break;
    }
  }
  if (braces > 0) return "has a { without its }";
  return in_math ? "has a $ without its other $" : "";
}

}  // namespace

Name name_of(const Names& names, const std::string& word) {
  const auto found = names.find(word);
  return found == names.end() ? Name{word} : found->second;
}

Name name_of(const Names& names, const std::string& axis, const std::string& label) {
  const auto found = names.find(axis + "=" + label);
  return found == names.end() ? name_of(names, label) : found->second;
}

Name read_name(const toml::node& node, const std::string& key, const std::string& location) {
  if (const auto* text = node.as_string()) return {text->get()};
  const toml::table* table = node.as_table();
  const auto word = [&](const char* part) { return table ? (*table)[part].value_exact<std::string>() : std::nullopt; };
  const std::optional<std::string> text = word("text"), latex = word("latex");
  if (!text || table->size() != (latex ? 2 : 1)) {
    fail("{}: {} must be a text, or as in {{ text = \"g = √d\", latex = \"$g=\\\\sqrt{{d}}$\" }}", location, key);
  }
  if (const std::string fault = latex ? fault_of(*latex) : ""; !fault.empty())
    fail("{}: the latex of {} {}", location, key, fault);
  return {*text, latex.value_or("")};
}

std::string names_text(const Names& names) {
  std::string text;
  for (const auto& [word, name] : names) {
    const std::string value =
        name.latex.empty() ? toml_value(name.text)
                           : fmt::format("{{ text = {}, latex = {} }}", toml_value(name.text), toml_value(name.latex));
    text += fmt::format("names.{} = {}\n", toml_value(word), value);
  }
  return text;
}

}  // namespace tearless::harness
