// tearless-engine check: files for people, JSON lines for the harness.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/task/check.h"

namespace tearless::engine {
namespace {

int answer_lines() {
  std::ios::sync_with_stdio(false);
  std::string line;
  // Flushed line by line: the asking side may wait for each answer.
  while (std::getline(std::cin, line)) std::cout << check_line(line).dump() << '\n' << std::flush;
  return kExitDone;
}

std::string pending_or(const nlohmann::json& number, double unit, const char* name) {
  return number.is_null() ? fmt::format("{} pending (prepare the corpus first)", name)
                          : fmt::format("{} {:.2f} M", name, number.get<double>() / unit);
}

int answer_files(const std::vector<std::filesystem::path>& files, bool canonical) {
  int code = kExitDone;
  for (const auto& file : files) {
    try {
      const auto answer =
          check_run(read_run_options(read_toml_settings(file), std::filesystem::absolute(file).parent_path(), {}));
      fmt::print("{}: run {}, {}, {}, at most {} updates{}\n", file.string(), answer.at("id").get<std::string>(),
                 pending_or(answer.at("parameters"), 1e6, "parameters"), pending_or(answer.at("memory_bytes"), 1 << 20, "memory in MiB"),
                 answer.at("updates").get<int64_t>(),
                 answer.at("waiting_for").get<std::string>().empty() ? "" : "; waits for data: " + answer.at("waiting_for").get<std::string>());
      if (canonical) fmt::print("{}", answer.at("canonical").get<std::string>());
    } catch (const UserError& error) {
      fmt::print(stderr, "tearless-engine: {}\n", error.what());
      code = kExitSettingsRefused;
    }
  }
  return code;
}

}  // namespace

Action command_check(CLI::App& app) {
  const auto files = std::make_shared<std::vector<std::filesystem::path>>();
  const auto json = std::make_shared<bool>(false);
  const auto canonical = std::make_shared<bool>(false);
  app.add_option("FILE", *files, "settings in TOML");
  app.add_flag("--canonical", *canonical, "print the canonical settings too");
  app.add_flag("--json", *json, "answer configurations from standard input, a JSON line each (docs/run_directory.md)");
  return [=] {
    if (*json) return answer_lines();
    if (files->empty()) fail("check: name a TOML file, or use --json and write to standard input");
    return answer_files(*files, *canonical);
  };
}

}  // namespace tearless::engine
