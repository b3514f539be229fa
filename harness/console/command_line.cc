#include "harness/console/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/nearest.h"

namespace tearless::harness {
namespace {

CommandText command_text(const CLI::App& app) {
  CommandText command{.name = app.get_name(),
                      .help = app.get_description(),
                      .group = app.get_group(),
                      .footer = app.get_footer(),
                      .options = {},
                      .arguments = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->nonpositional()) {
      command.arguments.push_back({.name = option->get_name(/*positional=*/true),
                                   .help = option->get_description(),
                                   .required = option->get_required(),
                                   .repeatable = option->get_items_expected_max() > 1});
      continue;
    }
    if (option->get_group().empty()) continue;  // not of --help
    OptionText text{.names = {}, .value = "", .help = option->get_description()};
    for (const std::string& name : option->get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) text.names.push_back("--" + name);
    if (option->get_items_expected_max() > 0) {
      text.value = option->get_type_name();
      if (!option->get_default_str().empty()) text.value += "=" + option->get_default_str();
      if (option->get_items_expected_max() > 1) text.value += " …";
    }
    command.options.push_back(std::move(text));
  }
  return command;
}

}  // namespace

CommandLine command_line(const CLI::App& program) {
  CommandLine line{.program = command_text(program), .commands = {}};
  for (const CLI::App* app : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (!app->get_group().empty()) line.commands.push_back(command_text(*app));
  }
  return line;
}

std::string sentence_of(const CLI::ParseError& error, const CLI::App& program) {
  const std::vector<const CLI::App*> parsed =
      program.get_subcommands([](const CLI::App* one) { return one->parsed(); });
  const CLI::App& command = parsed.empty() ? program : *parsed.front();
  const std::string name = &command == &program ? "tearless" : "tearless " + command.get_name();
  std::vector<std::string> known;
  for (const CLI::App* parser : {&command, &program}) {
    for (const CLI::Option* option : parser->get_options()) {
      for (const std::string& option_name : option->get_lnames()) known.push_back("--" + option_name);
    }
  }
  const std::vector<std::string> unexpected = program.remaining(/*recurse=*/true);
  for (const std::string& word : unexpected) {
    if (!word.starts_with("-")) continue;
    const std::string option = word.substr(0, word.find('='));
    return fmt::format("{} has no option \"{}\"{}", name, option, did_you_mean(option, known));
  }
  std::string what = error.what();
  // "--priority: 1 required INT missing"
  if (what.ends_with(" missing")) what = what.substr(0, what.find(':')) + " needs a value";
  if (!unexpected.empty()) what = fmt::format("{} takes no \"{}\"", name, unexpected.front());
  return fmt::format("{}; {} --help lists what it takes", what, name);
}

}  // namespace tearless::harness
