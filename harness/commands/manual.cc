// `tearless manual`: prints the man page tearless(1), for `make install`; with --markdown docs/commands.md.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "base/build_stamp.h"
#include "harness/commands/commands.h"
#include "harness/console/command_line.h"

namespace tearless::harness {
namespace {

// troff reads a backslash, and a dot or an apostrophe at the start of a line, as commands, and a hyphen as a soft one.
std::string in_roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

constexpr std::pair<int, const char*> kExitCodes[] = {
    {kOk, "all went well"},
    {kSomethingFailed, "a run has no result, verify found a difference, or a claim is contradicted"},
    {kUsage, "a mistake in the command or its files"},
    {kInterrupted, "ended by Ctrl-C"}};

std::string options_page(const CommandText& command) {
  std::string text;
  for (const OptionText& option : command.options) {
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", in_roff(fmt::format("{}", fmt::join(option.names, ", "))),
                        option.value.empty() ? "" : " \\fI" + in_roff(option.value) + "\\fR", in_roff(option.help));
  }
  return text;
}

std::string command_page(const CommandText& command) {
  std::string text = fmt::format(".SS {}\n.B tearless {}\n", in_roff(command.name), in_roff(command.name));
  if (!command.options.empty()) text += "[OPTIONS]\n";
  for (const ArgumentText& argument : command.arguments) {
    const std::string name = fmt::format("\\fI{}\\fR{}", in_roff(argument.name), argument.repeatable ? "…" : "");
    text += argument.required ? name + "\n" : "[" + name + "]\n";
  }
  text += fmt::format(".PP\n{}.\n", in_roff(command.help));
  for (const ArgumentText& argument : command.arguments) {
    text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", in_roff(argument.name), in_roff(argument.help));
  }
  return text + options_page(command);
}

std::string man_page(const CommandLine& line) {
  std::string text = fmt::format(
      ".TH TEARLESS 1 \"\" \"{}\"\n.SH NAME\ntearless \\- ablation grids of Transformers\n"
      ".SH SYNOPSIS\n.B tearless\n[OPTIONS] \\fIcommand\\fR [ARGUMENTS]\n.SH DESCRIPTION\n{}\n"
      ".SH OPTIONS\nThese may precede or follow any command.\n",
      in_roff(std::string("tearless ") + std::string(build_stamp())), in_roff(line.program.help));
  text += options_page(line.program) + ".SH COMMANDS\n";
  for (const CommandText& command : line.commands) text += command_page(command);
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) text += fmt::format(".TP\n{}\n{}\n", code, in_roff(meaning));
  return text;
}

// A cell of a table.
std::string in_markdown(const std::string& text) {
  std::string result;
  bool is_code = false;
  for (const char c : text) {
    if (c == '`') is_code = !is_code;
    if (c == '|' || (!is_code && (c == '*' || c == '<'))) result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_table(const CommandText& command) {
  std::string rows;
  for (const ArgumentText& argument : command.arguments) {
    rows += fmt::format("| `{}{}`{} | {} |\n", argument.name, argument.repeatable ? "…" : "",
                        argument.required ? " (needed)" : "", in_markdown(argument.help));
  }
  for (const OptionText& option : command.options) {
    if (option.names.front() == "-h") continue;
    rows += fmt::format("| `{}{}` | {} |\n", fmt::join(option.names, "`, `"),
                        option.value.empty() ? "" : " " + option.value, in_markdown(option.help));
  }
  return rows.empty() ? "" : "\n| | |\n|---|---|\n" + rows;
}

std::string markdown_section(const CommandText& command) {
  const std::string page = command.footer.substr(command.footer.rfind("docs/") + 5);
  const bool has_json = command.footer.find("\n  --json") != std::string::npos;
  return fmt::format("\n### {}\n\n{}{}.{} More: [{}]({}).\n{}", command.name,
                     static_cast<char>(std::toupper(command.help[0])), in_markdown(command.help.substr(1)),
                     has_json ? " `--json`." : "", page, page, markdown_table(command));
}

std::string markdown_page(const CommandLine& line) {
  std::string text =
      "# Commands\n\nWritten by `tearless manual --markdown`: the words of each `--help`.\n\n## Options of every "
      "command\n\nThey may precede or follow the command. `--json` is taken where it is named.\n" +
      markdown_table(line.program);
  std::vector<std::string> groups;
  for (const CommandText& command : line.commands) {
    if (std::ranges::find(groups, command.group) == groups.end()) groups.push_back(command.group);
  }
  for (const std::string& group : groups) {
    text += fmt::format("\n## {}\n", group);
    for (const CommandText& command : line.commands) {
      if (command.group == group) text += markdown_section(command);
    }
  }
  text += "\n## Exit codes\n\n| | |\n|---|---|\n";
  for (const auto& [code, meaning] : kExitCodes) text += fmt::format("| {} | {} |\n", code, meaning);
  return text;
}

}  // namespace

Action command_manual(CLI::App& app, const Globals&) {
  const CLI::Option* const markdown = app.add_flag("--markdown");
  return [&app, markdown]() -> int {
    const CommandLine line = command_line(*app.get_parent());
    fmt::print("{}", markdown->count() > 0 ? markdown_page(line) : man_page(line));
    return kOk;
  };
}

}  // namespace tearless::harness
