// `tearless completion SHELL`: prints a script that completes tearless' commands, options, sweeps and runs. `tearless
// completion words` prints the words for sweeps and runs; the scripts call it.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "harness/commands/command_line.h"
#include "harness/commands/commands.h"
#include "harness/store/selectors.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxRuns = 1000;  // whose ids are offered

enum class Offer { kFiles, kGrids, kWords };

// What the arguments of a command are completed to.
Offer offer_for(const CommandText& command) {
  const auto has = [&](std::string_view name) {
    return std::any_of(command.arguments.begin(), command.arguments.end(),
                       [&](const ArgumentText& argument) { return argument.name == name; });
  };
  if (has("what") || has("left")) return Offer::kWords;
  return has("grid") ? Offer::kGrids : Offer::kFiles;
}

std::string option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string with_escapes(const std::string& text, const std::string& escaped) {
  std::string result;
  for (const char c : text) {
    if (escaped.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

// In single quotes, as sh and its relatives read them.
std::string in_sh_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// --- bash ------------------------------------------------------------------------------------------------------------

std::string bash_script(const CommandLine& line) {
  std::vector<std::string> commands, cases, valued;
  const auto note_valued = [&](const CommandText& command) {
    for (const OptionText& option : command.options) {
      if (!option.value.empty()) valued.insert(valued.end(), option.names.begin(), option.names.end());
    }
  };
  note_valued(line.program);
  for (const CommandText& command : line.commands) {
    commands.push_back(command.name);
    note_valued(command);
    const Offer offer = offer_for(command);
    cases.push_back(fmt::format("    {}) options='{}' offer={} ;;", command.name, option_names(command),
                                offer == Offer::kGrids   ? "grids"
                                : offer == Offer::kWords ? "words"
                                                         : "files"));
  }
  return fmt::format(R"script(# Completion of tearless in bash. Made by: tearless completion bash
_tearless() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command= options= offer=files workspace=() word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    case $word in
      --workspace) workspace=(--workspace "${{COMP_WORDS[++i]}}") ;;
      --engine) ((++i)) ;;
      -*) ;;
      *) [ -n "$command" ] || command=$word ;;
    esac
  done
  COMPREPLY=()
  case ' {0} ' in *" $previous "*) return ;; esac
  case $command in
    '') options='{1}' offer=commands ;;
{2}
  esac
  if [[ $current == -* ]]; then
    [ -z "$command" ] || options+=' {1}'
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  case $offer in
    commands) COMPREPLY=($(compgen -W '{3}' -- "$current")) ;;
    words)
      COMPREPLY=($(compgen -W "$("$1" "${{workspace[@]}}" completion words 2>/dev/null)" -- "$current")
        $(compgen -f -X '!*.toml' -- "$current")) ;;
    grids) COMPREPLY=($(compgen -f -X '!*.toml' -- "$current")) ;;
  esac
}}
complete -o default -F _tearless tearless
)script",
                     fmt::join(valued, " "), option_names(line.program), fmt::join(cases, "\n"),
                     fmt::join(commands, " "));
}

// --- zsh -------------------------------------------------------------------------------------------------------------

std::string zsh_options(const CommandText& command) {
  std::string text;
  for (const OptionText& option : command.options) {
    const std::string value = option.value.empty() ? "" : fmt::format(":{}:_files", with_escapes(option.value, "\\:"));
    for (const std::string& name : option.names) {
      text +=
          fmt::format(" {}", in_sh_quotes(fmt::format("{}[{}]{}", name, with_escapes(option.help, "\\[]:"), value)));
    }
  }
  return text;
}

std::string zsh_script(const CommandLine& line) {
  std::string commands, cases;
  for (const CommandText& command : line.commands) {
    commands += "    " + in_sh_quotes(with_escapes(command.name, ":") + ":" + command.help) + "\n";
    const Offer offer = offer_for(command);
    const char* argument = offer == Offer::kGrids   ? "'*:grid:_files -g \"*.toml\"'"
                           : offer == Offer::kWords ? "'*:what:_tearless_words'"
                                                    : "'*:file:_files'";
    cases += fmt::format("    {}) _arguments $program{} {} ;;\n", command.name, zsh_options(command), argument);
  }
  return fmt::format(R"script(#compdef tearless
# Completion of tearless in zsh. Made by: tearless completion zsh
_tearless_words() {{
  compadd -- ${{(f)"$(tearless completion words 2>/dev/null)"}}
  _files -g '*.toml'
}}
_tearless() {{
  local state line
  local -a commands program
  commands=(
{0}  )
  program=({1})
  _arguments -C $program '1: :->command' '*:: :->arguments' && return
  if [[ $state == command ]]; then
    _describe command commands
    return
  fi
  case $words[1] in
{2}  esac
}}
if [[ $funcstack[1] == _tearless ]]; then
  _tearless "$@"  # this file was loaded as the function
else
  compdef _tearless tearless
fi
)script",
                     commands, zsh_options(line.program), cases);
}

// --- fish ------------------------------------------------------------------------------------------------------------

std::string fish_options(const CommandText& command, const std::string& condition) {
  std::string text;
  for (const OptionText& option : command.options) {
    text += "complete -c tearless" + condition;
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.value.empty()) text += " -r -F";
    text += " -d '" + with_escapes(option.help, "\\'") + "'\n";
  }
  return text;
}

std::string fish_script(const CommandLine& line) {
  std::string text = "# Completion of tearless in fish. Made by: tearless completion fish\ncomplete -c tearless -f\n";
  text += fish_options(line.program, "");
  for (const CommandText& command : line.commands) {
    text += fmt::format("complete -c tearless -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                        with_escapes(command.help, "\\'"));
    const std::string condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
    text += fish_options(command, condition);
    const Offer offer = offer_for(command);
    if (offer == Offer::kFiles) {
      if (!command.arguments.empty()) text += "complete -c tearless" + condition + " -F\n";
      continue;
    }
    text += "complete -c tearless" + condition + " -a '(__fish_complete_suffix .toml)'\n";
    if (offer == Offer::kWords) {
      text += "complete -c tearless" + condition + " -a '(tearless completion words 2>/dev/null)'\n";
    }
  }
  return text;
}

// --- words -----------------------------------------------------------------------------------------------------------

int print_words(const Globals& globals) {
  for (const std::string& word : fixed_words()) print("{}\n", word);
  const auto store = Store::open_reader(Workspace(globals.workspace));
  if (!store) return kOk;
  size_t left = kMaxRuns;
  for (const Sweep& sweep : store->sweeps()) {
    print("{}\n", sweep.id);
    for (const RunRecord& run : store->runs_of(sweep.id)) {
      if (left == 0) break;
      --left;
      print("{}\n", run.id);
    }
  }
  return kOk;
}

}  // namespace

Action command_completion(CLI::App& app, const Globals& globals) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish; \"words\": the words that mean sweeps and runs")->required();
  return [shell, &app, &globals]() -> int {
    if (*shell == "words") return print_words(globals);
    const CommandLine line = command_line(*app.get_parent());
    if (*shell == "bash") {
      fmt::print("{}", bash_script(line));
    } else if (*shell == "zsh") {
      fmt::print("{}", zsh_script(line));
    } else if (*shell == "fish") {
      fmt::print("{}", fish_script(line));
    } else {
      const std::vector<std::string> shells = {"bash", "zsh", "fish"};
      fail("there is no completion for \"{}\"{}; choose one of {}", *shell, did_you_mean(*shell, shells),
           fmt::join(shells, ", "));
    }
    return kOk;
  };
}

}  // namespace tearless::harness
