// tearless-engine prepare: prepares the corpus in advance, as training would do first.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/data/corpus.h"
#include "engine/data/prepared.h"
#include "engine/task/run_options.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {

Action command_prepare(CLI::App& app) {
  const auto file = std::make_shared<std::filesystem::path>();
  app.add_option("FILE", *file, "TOML file with settings; [data] and [text] are used")->required();
  return [file] {
    stop_at_once();
    RunOptions options =
        read_run_options(read_toml_settings(*file), std::filesystem::absolute(*file).parent_path(), {});
    if (const std::string missing = missing_corpus(options.data); !missing.empty())
      fail("{}: {}", file->string(), missing);
    fingerprint(options.data);
    const Prepared corpus =
        prepare(options.data, options.text, [](const std::string& line) { fmt::print("{}\n", line); });
    fmt::print("{}: {} training, {} dev, {} test pairs; vocabulary {}\n",
               prepared_folder(preparation_key(options.data, options.text)).string(), corpus.train.size(),
               corpus.dev.size(), corpus.test.size(), corpus.vocabulary.size());
    return static_cast<int>(kExitDone);
  };
}

}  // namespace tearless::engine
