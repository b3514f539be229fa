// Stand-ins of Slurm's commands (tests/slurm/stand_in.py) in a folder of a test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness {

class StandIns {
 public:
  /// `settings`: "slots=1" and the like (CONFIG of stand_in_state.py).
  explicit StandIns(const std::vector<std::string>& settings = {}) {
    std::vector<std::string> words = {"install", folder().string()};
    words.insert(words.end(), settings.begin(), settings.end());
    EXPECT_EQ(call(words).code, 0);
  }
  ~StandIns() { call({"stop", folder().string()}); }
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

  std::filesystem::path folder() const { return folder_ / "slurm"; }
  std::string path() const { return (folder() / "bin").string(); }

  /// A misbehaviour of a command; `more`: further keys.
  static nlohmann::json wrong(const std::string& command, const std::string& what,
                              nlohmann::json more = nlohmann::json::object()) {
    more["command"] = command;
    more["do"] = what;
    return more;
  }
  /// From now on these are what goes wrong.
  void misbehave(const std::vector<nlohmann::json>& entries) const {
    test::write_text(folder() / "script.json", nlohmann::json(entries).dump());
  }

  /// Ends a running job as if another one needed its node.
  void preempt(const std::string& job) const { EXPECT_EQ(call({"preempt", folder().string(), job}).code, 0); }

  /// The arguments of all calls of a command so far, a line each.
  std::vector<std::string> calls(const std::string& command) const {
    std::vector<std::string> calls;
    std::ifstream in(folder() / "calls.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto call = nlohmann::json::parse(line);
      if (call["command"] != command) continue;
      calls.emplace_back();
      for (const std::string argument : call["arguments"]) calls.back() += argument + " ";
    }
    return calls;
  }

  /// The jobs that the stand-in knows, forgotten ones too: name and state.
  std::vector<std::string> jobs() const {
    std::vector<std::string> jobs;
    const auto state = nlohmann::json::parse(test::read_text(folder() / "state.json"));
    for (const auto& job : state["jobs"]) {
      jobs.push_back(job["name"].get<std::string>() + " " + job["state"].get<std::string>());
    }
    return jobs;
  }

 private:
  static test::Finished call(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"/usr/bin/env", "python3",
                                      (test::source_root() / "tests/slurm/stand_in.py").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return test::run({.arguments = words, .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
  }

  test::TempFolder folder_;
};

}  // namespace tearless::harness
