// TwT's Table 3 at its own sizes, over a few short sentences: a copy of grids/ with such corpora, and its smoke runs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::test {

/// A copy of grids/ with a few short sentences in place of each corpus of Table 3: batches are then as small as
/// possible.
class TableThree : public testing::Test {
 protected:
  TableThree() {
    namespace fs = std::filesystem;
    fs::copy(source_root() / "grids", folder_ / "grids", fs::copy_options::recursive);
    for (const auto& [name, source, target] :
         {std::tuple("ted-gl-en", "gl", "en"), std::tuple("ted-sk-en", "sk", "en"),
          std::tuple("iwslt15-en-vi", "en", "vi"), std::tuple("ted-en-he", "en", "he"),
          std::tuple("ted-ar-en", "ar", "en")}) {
      const fs::path folder = folder_ / "data" / name;
      fs::create_directories(folder);
      for (const char* set : {"train", "dev", "test"}) {
        const std::string of_pair = std::string(source) + target;  // the same text would be the same runs
        write_text(folder / (set + std::string(".") + source), "uno\ndous " + of_pair + "\n");
        write_text(folder / (set + std::string(".") + target), "one\ntwo one\n");
      }
    }
  }

  Finished tearless(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program("tearless").string());
    return run({.arguments = std::move(arguments),
                .environment = {{"TEARLESS_CACHE", (folder_ / "cache").string()},
                                {"TEARLESS_ENGINE", program("tearless-engine").string()}},
                .folder = folder_.path()});
  }

  /// `tearless run --smoke` of what `only` names; its large checkpoints are removed.
  Finished smoke(const std::vector<std::string>& only) const {
    std::vector<std::string> arguments = {"run", "grids/twt_table3.toml", "--smoke"};
    for (const std::string& words : only) arguments.insert(arguments.end(), {"--only", words});
    Finished finished = tearless(arguments);
    std::filesystem::remove_all(folder_ / "results");
    return finished;
  }

  TempFolder folder_;
};

}  // namespace tearless::test
