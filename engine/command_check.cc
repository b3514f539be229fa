// tearless-engine check: checks settings files for people, or JSON lines for the harness.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <iostream>

#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/run/check.h"

namespace tearless::engine {
namespace {

/// Writes the answers to all questions that have arrived before it waits for more: the harness may wait for each
/// answer.
int answer_lines() {
  std::string questions, answers;
  const auto answer = [&](CheckBatch& batch, std::string_view line) {
    answers.append(batch.answer(line).dump()).push_back('\n');
  };
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    questions.append(buffer.data(), static_cast<size_t>(got));
    CheckBatch batch;
    size_t begin = 0;
    for (size_t end; (end = questions.find('\n', begin)) != std::string::npos; begin = end + 1) {
      answer(batch, std::string_view(questions).substr(begin, end - begin));
    }
    questions.erase(0, begin);
    std::cout << answers << std::flush;
    answers.clear();
  }
  CheckBatch last;
  if (!questions.empty()) answer(last, questions);
  std::cout << answers << std::flush;
  return kExitDone;
}

std::string sizes(const nlohmann::json& answer) {
  if (answer.at("parameters").is_null()) return "parameters and memory pending (prepare the corpus first)";
  return fmt::format("{} parameters, about {} MiB", answer.at("parameters").get<int64_t>(),
                     answer.at("memory_bytes").get<int64_t>() >> 20);
}

std::string length(const nlohmann::json& answer) {
  const auto updates = answer.at("updates").get<int64_t>();
  return updates == 0 ? "the length of a pass pending" : fmt::format("at most {} updates", updates);
}

int answer_files(const std::vector<std::filesystem::path>& files, bool canonical) {
  int code = kExitDone;
  for (const auto& file : files) {
    try {
      const WrittenSettings written = read_toml_settings(file);
      RunOptions options = read_run_options(written, std::filesystem::absolute(file).parent_path(), {});
      const auto unused = unused_settings(written, description_of(options));
      const auto answer = check_run(std::move(options));
      const auto waiting_for = answer.at("waiting_for").get<std::string>();
      fmt::print("{}: run {}, {}, {}{}\n", file.string(), answer.at("id").get<std::string>(), sizes(answer),
                 length(answer), waiting_for.empty() ? "" : "; waits for data: " + waiting_for);
      for (const auto& [key, by] : unused) {
        fmt::print("{}: {} has no effect: {} switches it off\n", written.location_of(key), key, by);
      }
      for (const auto& warning : answer.value("warnings", std::vector<std::string>()))
        fmt::print("warning: {}\n", warning);
      if (canonical) fmt::print("{}", answer.at("canonical").get<std::string>());
    } catch (const UserError& error) {
      const std::string sentence = error.what();
      const bool named = sentence.starts_with(file.string());
      fmt::print(stderr, "tearless-engine: {}{}\n", named ? "" : file.string() + ": ", sentence);
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
  app.add_option("FILE", *files, "TOML file with settings");
  app.add_flag("--canonical", *canonical, "print the canonical settings too");
  app.add_flag(
      "--json", *json,
      "read configurations from standard input, one JSON object a line, and answer each (docs/run_directory.md)");
  return [=] {
    if (*json) return answer_lines();
    if (files->empty()) fail("check: name a TOML file, or use --json and write to standard input");
    return answer_files(*files, *canonical);
  };
}

}  // namespace tearless::engine
