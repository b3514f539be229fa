// What the parser knows of the command line, as data: completion, the man page and docs/commands.md are made from it,
// so they cannot differ from what is accepted.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tearless::harness {

struct OptionText {
  std::vector<std::string> names;  // "-f", "--follow"
  std::string value;               // what it takes: "TEXT", "N=3", "TEXT …" if repeatable; "" for a flag
  std::string help;
};

struct ArgumentText {
  std::string name;  // "grid": grid files; "what": the words of selectors.h
  std::string help;
  bool required = false, repeatable = false;
};

struct CommandText {
  std::string name, help;
  std::string group, footer;  // of --help
  std::vector<OptionText> options;
  std::vector<ArgumentText> arguments;
};

/// The commands that --help lists. `program` is the outermost parser, and its options precede or follow any of them.
struct CommandLine {
  CommandText program;
  std::vector<CommandText> commands;
};
CommandLine command_line(const CLI::App& program);

/// The one sentence about words that `program` could not parse, with the nearest option.
std::string sentence_of(const CLI::ParseError& error, const CLI::App& program);

}  // namespace tearless::harness
