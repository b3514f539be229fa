// tearless-engine score: the score of a file of hypotheses, by a text metric (engine/score/metric.h); without --metric
// BLEU as training computes it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/run_directory.h"
#include "base/score/bleu.h"
#include "base/utf8.h"
#include "engine/commands.h"
#include "engine/data/text_lines.h"
#include "engine/score/detokenise.h"
#include "engine/score/metric.h"
#include "engine/score/tokenise.h"

namespace tearless::engine {
namespace {

struct Arguments {
  std::filesystem::path hypotheses, references;  // without --metric
  bool raw = false;
  std::string metric;
  std::filesystem::path hypothesis, reference;  // with --metric
  bool json = false;
  std::string detokenise;
  bool detokenise_reference = false;
  std::map<std::string, std::string> options;  // those given, of any metric: key → value
};

std::string read_text(const std::filesystem::path& file) {
  std::string bytes = read_file(file);
  refuse_compressed(bytes, file.string());
  return bytes;
}

/// On standard error, because the score is for other programs too.
void warn_of_missing_spaces(const std::vector<std::string_view>& references, const std::filesystem::path& file) {
  if (!has_hardly_a_space(references)) return;
  fmt::print(
      stderr,
      "tearless-engine: {} has hardly a space, and this score counts what spaces separate as words: use --metric "
      "sacrebleu with --tokeniser zh for Chinese, --tokeniser char for other text without spaces\n",
      printable(file.string()));
}

/// The lines of two files that hold the same sentences.
struct Sentences {
  Sentences(const std::filesystem::path& hypothesis, const std::filesystem::path& reference)
      : hypothesis_text(read_text(hypothesis)),
        reference_text(read_text(reference)),
        hypotheses(text_lines(hypothesis_text)),
        references(text_lines(reference_text)) {
    if (hypotheses.size() != references.size()) {
      fail("{} has {} lines, {} has {}: both must hold the same sentences, one a line", hypothesis.string(),
           hypotheses.size(), reference.string(), references.size());
    }
    if (hypotheses.empty()) fail("{} is empty", hypothesis.string());
  }

  std::string hypothesis_text, reference_text;
  std::vector<std::string_view> hypotheses, references;
};

int score_as_trained(const Arguments& args) {
  const Sentences sentences(args.hypotheses, args.references);
  warn_of_missing_spaces(sentences.references, args.references);
  BleuStats sum;
  for (size_t i = 0; i < sentences.hypotheses.size(); ++i) {
    const std::string_view ours = sentences.hypotheses[i], theirs = sentences.references[i];
    sum += args.raw ? bleu_stats(tokenise_13a(ours), tokenise_13a(theirs)) : bleu_stats(ours, theirs);
  }
  std::string precisions;
  for (size_t n = 0; n < 4; ++n) {
    const double p =
        sum.totals[n] > 0 ? 100.0 * static_cast<double>(sum.matches[n]) / static_cast<double>(sum.totals[n]) : 0;
    precisions += fmt::format("{}{:.1f}", n > 0 ? "/" : "", p);
  }
  fmt::print("{} {:.2f}, {} (hypothesis {} words, reference {})\n", args.raw ? "bleu_13a" : "bleu",
             args.raw ? bleu_exp_smoothed(sum) : bleu(sum), precisions, sum.hypothesis_length, sum.reference_length);
  return kExitDone;
}

// --- text metrics ----------------------------------------------------------------------------------------------------

/// "multi-bleu", the form of names and keys on the command line.
std::string with_hyphens(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}
std::string command_line_name(std::string_view key) { return "--" + with_hyphens(key); }

std::vector<DescribedField> options_of(TextMetric& metric) {
  return list_settings([&](SettingsVisitor& visitor) { metric.describe(visitor); });
}

std::unique_ptr<TextMetric> metric_called(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& metric : text_metrics()) {
    names.push_back(with_hyphens(metric->name));
    if (names.back() == name) return metric->clone();
  }
  fail("there is no metric \"{}\"{}; there are {}", name, did_you_mean(name, names), fmt::join(names, ", "));
}

/// Gives the metric its options. UserError for one that it does not have, and for a value that is not legal.
void set_options(TextMetric& metric, const std::map<std::string, std::string>& given) {
  std::vector<std::string> known;
  for (const DescribedField& option : options_of(metric)) known.push_back(command_line_name(option.key));
  WrittenSettings written{.values = {}, .locations = {}, .name = "score"};
  for (const auto& [key, text] : given) {
    const std::string name = command_line_name(key);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail("{} is no option of --metric {}, which has {}", name, with_hyphens(metric.name),
           known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    }
    const nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    written.values[key] = value.is_discarded() ? nlohmann::json(text) : value;
    written.locations[key] = name;
  }
  read_settings(written, [&](SettingsVisitor& visitor) { metric.describe(visitor); });
}

void refuse_other_bytes(const std::vector<std::string_view>& lines, const std::filesystem::path& file) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!valid_utf8(lines[i]))
      fail("{}:{}: not valid UTF-8; convert the file, for example with iconv", file.string(), i + 1);
  }
}

int score_by_metric(const Arguments& args) {
  const std::unique_ptr<TextMetric> metric = metric_called(args.metric);
  set_options(*metric, args.options);
  Sentences sentences(args.hypothesis, args.reference);
  refuse_other_bytes(sentences.hypotheses, args.hypothesis);
  refuse_other_bytes(sentences.references, args.reference);
  if (metric->needs_spaces()) warn_of_missing_spaces(sentences.references, args.reference);
  std::vector<std::string> raw_hypotheses, raw_references;
  const auto join = [&](std::vector<std::string_view>& lines, std::vector<std::string>& raw) {
    raw = detokenised(lines, args.detokenise);
    lines.assign(raw.begin(), raw.end());
  };
  if (!args.detokenise.empty()) join(sentences.hypotheses, raw_hypotheses);
  if (args.detokenise_reference) join(sentences.references, raw_references);
  const TextScore score = score_text(*metric, sentences.hypotheses, sentences.references);
  fmt::print("{}\n", args.json ? score_json(score) : score.line);
  return kExitDone;
}

int score(const Arguments& args) {
  const bool old_form = !args.hypotheses.empty() || !args.references.empty() || args.raw;
  const bool new_form = !args.metric.empty() || !args.hypothesis.empty() || !args.reference.empty() || args.json ||
                        !args.options.empty() || !args.detokenise.empty();
  if (old_form == new_form ||
      (old_form ? args.references.empty() : args.metric.empty() || args.hypothesis.empty() || args.reference.empty())) {
    fail(
        "score: name two files, HYPOTHESES REFERENCES, or a metric with its files, --metric NAME --reference FILE "
        "--hypothesis FILE");
  }
  return old_form ? score_as_trained(args) : score_by_metric(args);
}

}  // namespace

Action command_score(CLI::App& app) {
  const auto args = std::make_shared<Arguments>();
  app.add_option("HYPOTHESES", args->hypotheses, "without --metric: one sentence a line");
  app.add_option("REFERENCES", args->references, "without --metric: the same sentences");
  app.add_flag("--raw", args->raw, "the text is not tokenised: apply the 13a tokeniser");

  std::string meaning = "print the score as the original program does";
  for (const auto& metric : text_metrics()) {
    meaning += fmt::format("; {}: {}", with_hyphens(metric->name), metric->meaning);
  }
  app.add_option("--metric", args->metric, meaning);
  app.add_option("--hypothesis", args->hypothesis, "with --metric: one sentence a line");
  app.add_option("--reference", args->reference, "with --metric: the same sentences");
  CLI::Option* detokenise =
      app.add_option("--detokenise", args->detokenise,
                     "with --metric: join the words of the hypotheses to raw text first, as Moses' detokeniser does in "
                     "this language")
          ->type_name("LANGUAGE");
  detokenise->check(
      CLI::IsMember(std::vector<std::string>(kDetokenisedLanguages.begin(), kDetokenisedLanguages.end())));
  app.add_flag("--detokenise-reference", args->detokenise_reference, "the references are tokenised, too: join them")
      ->needs(detokenise);
  app.add_flag("--json", args->json, "with --metric: print JSON in sacreBLEU's form");
  std::map<std::string, std::string> help;  // metrics may share an option
  std::map<std::string, bool> is_flag;
  for (const auto& metric : text_metrics()) {
    for (const DescribedField& option : options_of(*metric)) {
      std::string& text = help[option.key];
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", with_hyphens(metric->name), option.field.meaning);
      is_flag[option.key] = option.type == "true/false";
    }
  }
  for (const auto& [key, text] : help) {
    const auto given = [args, key = key](const std::string& value) { args->options[key] = value; };
    if (is_flag.at(key)) {
      app.add_flag_callback(
          command_line_name(key), [given] { given("true"); }, text);
    } else {
      app.add_option_function<std::string>(command_line_name(key), given, text);
    }
  }
  return [args] { return score(*args); };
}

}  // namespace tearless::engine
