// tearless-engine decode: translates text with the model of a finished run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/data/text_lines.h"
#include "engine/device.h"
#include "engine/run/run_options.h"
#include "engine/task/translate.h"
#include "engine/train/execution.h"
#include "engine/train/model_file.h"

namespace tearless::engine {
namespace {

struct DecodeArguments {
  std::filesystem::path directory, input, output;
  std::optional<int64_t> beam;
  std::optional<double> alpha;
};

std::string name_of(const std::filesystem::path& input) { return input.empty() ? "standard input" : input.string(); }

std::vector<std::string> read_lines(const std::filesystem::path& input) {
  std::string text;
  if (input.empty()) {
    std::ostringstream all;
    all << std::cin.rdbuf();
    text = all.str();
  } else {
    text = read_file(input);
  }
  refuse_compressed(text, name_of(input));
  const std::vector<std::string_view> lines = text_lines(text);
  return {lines.begin(), lines.end()};
}

int decode(const DecodeArguments& args) {
  RunOptions options = read_run_directory(args.directory);
  TranslateOptions& translation = options.as<TranslateOptions>("decode");
  translation.decode.beam = args.beam.value_or(translation.decode.beam);
  translation.decode.alpha = args.alpha.value_or(translation.decode.alpha);
  open_device(options.run);
  prepare_processor(options.run);
  const RunDirectory run(args.directory);

  Translate task(translation, options.train, options.run,
                 prepare(translation.data, translation.text, [](const std::string&) {}));
  read_finished_model(run, options.train, task);
  std::string text;
  const ParallelTokens source =
      encode_file(task.prepared(), translation.text.kind, read_lines(args.input), name_of(args.input));
  for (const std::string& line : task.hypotheses(source)) text += line + "\n";
  if (args.output.empty()) {
    fmt::print("{}", text);
  } else {
    write_atomically(args.output, text);
  }
  return kExitDone;
}

}  // namespace

Action command_decode(CLI::App& app) {
  const auto args = std::make_shared<DecodeArguments>();
  app.add_option("DIR", args->directory, "run directory of a finished run")->required();
  app.add_option("--input", args->input, "source sentences, one a line (default: standard input)");
  app.add_option("--output", args->output, "file for the translations (default: standard output)");
  app.add_option("--beam", args->beam, "beam size (default: the run's)")->check(CLI::Range(1, 64));
  app.add_option("--alpha", args->alpha, "length penalty (default: the run's)")->check(CLI::Range(0.0, 10.0));
  return [args] { return decode(*args); };
}

}  // namespace tearless::engine
