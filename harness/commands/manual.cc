// `tearless manual`: prints the man page tearless(1), for `make install`.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <string>

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
  for (const auto& [code, meaning] : {std::pair{kOk, "all went well"},
                                      {kSomethingFailed, "a run has no result, or verify found a difference"},
                                      {kUsage, "a mistake in the command or its files"},
                                      {kInterrupted, "ended by Ctrl-C"}}) {
    text += fmt::format(".TP\n{}\n{}\n", static_cast<int>(code), in_roff(meaning));
  }
  return text;
}

}  // namespace

Action command_manual(CLI::App& app, const Globals&) {
  return [&app]() -> int {
    fmt::print("{}", man_page(command_line(*app.get_parent())));
    return kOk;
  };
}

}  // namespace tearless::harness
