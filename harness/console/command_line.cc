#include "harness/console/command_line.h"

#include <CLI/CLI.hpp>

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

}  // namespace tearless::harness
