// What the end-to-end tests share: a few hundred real sentence pairs, settings that train on them in seconds, and the
// bytes that a run must leave however it was disturbed.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/hash.h"
#include "base/run_directory.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::test {

/// The first `count` lines of a text file.
inline std::string first_lines(const std::filesystem::path& file, int count) {
  std::ifstream in(file);
  std::string text, line;
  while (count-- > 0 && std::getline(in, line)) text += line + "\n";
  return text;
}

/// train, dev and test, de and en, in `folder`: the beginnings of the demo's corpus.
inline void write_small_corpus(const std::filesystem::path& folder, int train = 300, int evaluation = 12) {
  for (const auto& [set, count] :
       {std::pair("train", train), std::pair("dev", evaluation), std::pair("test", evaluation)}) {
    for (const char* side : {".de", ".en"}) {
      write_text(folder / (set + std::string(side)),
                 first_lines(source_root() / "grids/demo" / (set + std::string(side)), count));
    }
  }
}

/// Sixty updates with an evaluation after every fifteen, each long enough for a test to see it happen; keys as in a
/// run's settings.
inline std::map<std::string, std::string> small_settings() {
  return {{"data.name", "\"small\""},
          {"data.train", "\"train\""},
          {"data.dev", "\"dev\""},
          {"data.test", "\"test\""},
          {"data.source", "\"de\""},
          {"data.target", "\"en\""},
          {"text.kind", "\"sentencepiece\""},
          {"text.pieces", "200"},
          {"model.encoder_layers", "1"},
          {"model.decoder_layers", "1"},
          {"model.d_model", "128"},
          {"model.d_ff", "512"},
          {"model.heads", "2"},
          {"model.dropout.residual", "0.1"},
          {"train.epoch_updates", "15"},
          {"train.max_epochs", "4"},
          {"train.early_stop", "0"},
          {"train.batch.tokens", "600"},
          {"train.schedule.scale", "0.5"},
          {"train.schedule.warmup_updates", "30"},
          {"decode.beam", "2"},
          {"decode.max_extra", "8"},
          {"run.log_updates", "1"}};
}

inline std::string toml_of(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += key + " = " + value + "\n";
  return text;
}

inline size_t count_lines(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return 0;
  const std::string text = read_text(file);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Checksums of everything that must not depend on what happened on the way.
inline std::map<std::string, std::string> checksums(const RunDirectory& run) {
  std::map<std::string, std::string> sums;
  const auto add = [&](const std::filesystem::path& file) { sums[file.filename()] = sha256(read_text(file)); };
  add(run.metrics());
  add(run.gradient_norms());
  add(run.scores());
  add(run.done());
  add(run.model());
  for (const auto& entry : std::filesystem::directory_iterator(run.outputs())) add(entry.path());
  return sums;
}

}  // namespace tearless::test
