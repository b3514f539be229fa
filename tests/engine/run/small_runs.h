// Whole runs small enough for a test: a made-up corpus, a cache and run directories in a folder of their own, and
// attempts in this process.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/run_directory.h"
#include "engine/ops/matmul.h"
#include "engine/run/attempt.h"
#include "engine/run/check.h"
#include "engine/run/run_options.h"
#include "engine/task/translate.h"
#include "tests/support/paths.h"

namespace tearless::engine::test {

using tearless::test::read_text;
using tearless::test::write_text;

inline std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::istringstream text(read_text(file));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// The settings of a run of translation.
inline TranslateOptions& translation(const RunOptions& options) { return options.as<TranslateOptions>("this test"); }
/// The task of such a run, which `options` must outlive. (Translate cannot be copied or moved.)
inline Translate translate_task(const RunOptions& options) {
  const TranslateOptions& own = translation(options);
  return Translate(own, options.train, options.run, prepare(own.data, own.text, [](const std::string&) {}));
}

/// The task of any run, which `options` must outlive.
inline std::unique_ptr<Task> task_of(const RunOptions& options) {
  return options.task->make(options.train, options.run, [](const std::string&) {});
}

/// Dotted keys and values, as a TOML file or a grid would set them.
using Settings = std::map<std::string, nlohmann::json>;

/// `base`, with the values of `changes` over it.
inline Settings with(Settings base, const Settings& changes) {
  for (const auto& [key, value] : changes) base[key] = value;
  return base;
}

/// [data] of the corpus that SmallRuns::write() makes as train, dev and test.
inline Settings corpus_settings() {
  return {{"data.name", "small"}, {"data.train", "train"}, {"data.dev", "dev"},
          {"data.test", "test"},  {"data.source", "src"},  {"data.target", "tgt"}};
}

/// The results of a run; files that are compared byte for byte are strings.
struct Ended {
  ExitCode code = kExitDone;
  nlohmann::json done, measured, scores;  // scores: null where there are none
  std::string metrics, scores_text, arithmetic;
  std::map<std::string, std::string> outputs;  // file name → content
  std::vector<std::string> checkpoints;

  bool same_results(const Ended& other) const { return scores_text == other.scores_text && outputs == other.outputs; }
  /// The values of one metric, in order.
  std::vector<double> metric(const std::string& name) const {
    std::vector<double> values;
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.at("name") == name) values.push_back(record.at("value"));
    }
    return values;
  }
};

/// A sentence and its label.
using Labelled = std::pair<std::string, int32_t>;

/// [data] of the labelled lines that SmallRuns::write_labelled() makes as train, dev and test.
inline Settings labelled_settings() {
  return {{"task", "classify"}, {"data.name", "small"}, {"data.train", "train"},
          {"data.dev", "dev"},  {"data.test", "test"},  {"data.classes", "bad good"}};
}

class SmallRuns {
 public:
  SmallRuns() {
    ::setenv("TEARLESS_CACHE", (folder_ / "cache").c_str(), /*overwrite=*/1);
    fix_matmul_order();
    spdlog::set_level(spdlog::level::warn);
  }
  ~SmallRuns() { ::unsetenv("TEARLESS_CACHE"); }
  SmallRuns(const SmallRuns&) = delete;
  SmallRuns& operator=(const SmallRuns&) = delete;

  const std::filesystem::path& folder() const { return folder_.path(); }

  /// NAME.src and NAME.tgt from pairs of lines.
  void write(const std::string& name, const std::vector<std::pair<std::string, std::string>>& pairs) const {
    std::string source, target;
    for (const auto& [from, to] : pairs) {
      source += from + "\n";
      target += to + "\n";
    }
    write_text(folder_ / (name + ".src"), source);
    write_text(folder_ / (name + ".tgt"), target);
  }

  /// A file of labelled lines.
  void write_labelled(const std::string& name, const std::vector<Labelled>& sentences) const {
    std::string lines;
    for (const auto& [sentence, label] : sentences) lines += std::to_string(label) + " " + sentence + "\n";
    write_text(folder_ / name, lines);
  }

  /// A new run directory for these settings, whatever was created before.
  std::filesystem::path make(const Settings& settings) {
    std::string toml;
    for (const auto& [key, value] : settings) toml += key + " = " + toml_value(value) + "\n";
    write_text(folder_ / "settings.toml", toml);
    return make_run_directory(folder_ / "settings.toml", folder_ / ("runs" + std::to_string(++count_)));
  }

  /// What `check` answers of the run with these settings, or of the run that a chain of derivations makes of it.
  nlohmann::json asked(const Settings& settings, const std::vector<Settings>& chain, bool smoke = false) const {
    nlohmann::json question = {{"settings", settings}, {"folder", folder().string()}, {"smoke", smoke}};
    for (const Settings& derived : chain) question["derived"].push_back(derived);
    return CheckBatch().answer(question.dump());
  }
  /// The run directory of such an answer, without what was in it.
  RunDirectory made(const nlohmann::json& answer) const {
    EXPECT_FALSE(answer.contains("error")) << answer;
    RunDirectory run(folder_ / "runs" / answer.at("id").get<std::string>());
    std::filesystem::remove_all(run.root());
    std::filesystem::create_directories(run.root());
    write_text(run.settings(), answer.at("canonical").get<std::string>());
    write_text(run.local(), answer.at("local").get<std::string>());
    return run;
  }

  /// Trains from the start, whatever was trained before.
  Ended train(const Settings& settings) {
    const RunDirectory run(make(settings));
    Ended ended;
    ended.code = attempt_run(run.root());
    ended.done = nlohmann::json::parse(read_text(run.done()));
    ended.measured = nlohmann::json::parse(read_text(run.attempt(1) / "measured.json"));
    ended.metrics = read_text(run.metrics());
    ended.arithmetic = read_text(run.attempt(1) / "arithmetic");
    if (ended.code == kExitDone) {
      ended.scores_text = read_text(run.scores());
      ended.scores = nlohmann::json::parse(ended.scores_text);
      for (const auto& file : std::filesystem::directory_iterator(run.outputs())) {
        ended.outputs[file.path().filename()] = read_text(file.path());
      }
    }
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(run.checkpoints(), none)) {
      ended.checkpoints.push_back(entry.path().filename());
    }
    std::sort(ended.checkpoints.begin(), ended.checkpoints.end());
    return ended;
  }

  /// As `check` reads them, with the checksums of the corpora that are there.
  RunOptions options(const Settings& settings) const {
    WrittenSettings written;
    written.values = settings;
    written.name = "settings";
    RunOptions options = read_run_options(written, folder(), {});
    if (options.task->data_files().missing().empty()) options.task->data_files().fingerprint();
    return options;
  }
  std::string canonical(const Settings& settings) const {
    RunOptions read = options(settings);
    return canonical_text(read);
  }

 private:
  tearless::test::TempFolder folder_;
  int count_ = 0;
};

}  // namespace tearless::engine::test
