#include "engine/run/check.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/hash.h"
#include "base/run_directory.h"
#include "base/words.h"
#include "engine/train/execution.h"
#include "engine/train/result_names.h"

namespace tearless::engine {
using nlohmann::json;

namespace {

/// The written key that `message` names first, which is what it is about; a suggestion may follow. Of several keys
/// that begin there the longest; "" if the message names no key.
std::string key_in(const std::string& message, const WrittenSettings& written) {
  std::string found;
  size_t first = std::string::npos;
  for (const auto& [key, value] : written.values) {
    const size_t at = message.find(key);
    if (at < first || (at == first && at != std::string::npos && key.size() > found.size())) {
      found = key;
      first = at;
    }
  }
  return found;
}

// Prefixes of keys that change neither a run's memory nor its speed. A key that is missing here only splits a resource
// class in two.
constexpr auto kNotOfShape = std::to_array<std::string_view>(
    {"model.decoder_start", "model.ds_init.", "model.embedding_scale", "model.init", "model.positions.", "text.bleu",
     "train.adam.", "train.diverged_loss", "train.dropout_seed", "train.early_stop", "train.init_seed",
     "train.label_smoothing", "train.loss_mean", "train.max_", "train.min_lr", "train.optimiser.weight_decay",
     "train.order_seed", "train.schedule.", "train.seed"});

std::string resource_class_of(const RunOptions& options, std::string_view canonical) {
  std::string text = fmt::format("{} {}\n", options.run.device == ExecutionOptions::Device::kCuda, options.run.threads);
  for (const std::string_view line : split_lines(canonical)) {
    const auto begins_line = [&](std::string_view key) { return line.starts_with(key); };
    if (std::none_of(kNotOfShape.begin(), kNotOfShape.end(), begins_line)) text.append(line).push_back('\n');
  }
  return sha256(text).substr(0, 16);
}

/// The checksum of each file, by its path.
json checksums_of(const DataFiles& files) {
  json checksums = json::object();
  for (const DataSet& set : files.sets) {
    for (const DataSetting& setting : set.settings) {
      for (const std::string& ending : setting.endings) {
        const std::string file = *setting.path + ending;
        checksums[file] = files_sha256(std::array{file}, files.expected);
      }
    }
  }
  return checksums;
}

// What alone depends on a run's seed. Returns the canonical text of the trained run.
std::string put_identity(json& answer, DerivedRun& run) {
  std::string trained = canonical_text(run.trained), canonical = trained;
  for (DerivedOptions& derived : run.chain) {
    derived.of = run_id(canonical);
    canonical = canonical_text(derived);
  }
  answer["id"] = run_id(canonical);
  answer["canonical"] = std::move(canonical);
  return trained;
}

/// A limit as the harness reads it: 0 if it is not known.
int64_t known(int64_t limit) { return limit == TrainOptions::kUnlimited ? 0 : limit; }

json answer_for(const RunOptions& options) {
  const DataFiles files = options.task->data_files();
  const std::string waiting_for = files.missing();
  json answer = {{"state", waiting_for.empty() ? "ready" : "waiting_data"},
                 {"waiting_for", waiting_for},
                 {"parameters", nullptr},
                 {"memory_bytes", nullptr},
                 {"updates", known(options.train.update_limit())},
                 {"evaluations", known(options.train.evaluation_limit())},
                 {"device", options.run.device == ExecutionOptions::Device::kCuda ? "cuda" : "cpu"},
                 {"threads", options.run.threads}};
  const ResultNames names =
      result_names(options.task->numbers(), *options.task->model_parameters(), options.train, options.run);
  answer["scores"] = names.scores;
  answer["metrics"] = names.metrics;
  answer["windows"] = kEngineWindows;
  if (waiting_for.empty()) {
    files.fingerprint();
    answer["data"] = checksums_of(files);
    if (const auto doubts = files.doubts(); !doubts.empty()) answer["warnings"] = doubts;
    if (const auto size = options.task->size(options.train)) {
      answer["parameters"] = size->parameters;
      answer["memory_bytes"] = estimated_memory_bytes(options.run, size->parameters, size->saved_numbers,
                                                      options.train.optimiser.chosen().buffers);
    }
    if (options.train.counts_passes()) {
      const int64_t batches = options.task->pass_batches(options.train);
      const int64_t updates = (batches + options.train.accumulate - 1) / options.train.accumulate;
      check_falls_to_end(options.train, updates);
      answer["updates"] = known(options.train.update_limit(updates));
      answer["evaluations"] = known(options.train.evaluation_limit(updates));
    }
  }
  return answer;
}

/// Makes of the trained run's answer that of the derived one, and fills in the checksums of the sets of its own.
void become_derived(json& answer, DerivedRun& run) {
  for (DerivedOptions& derived : run.chain) {
    const DataFiles files = derived.chosen().data_files();
    if (const std::string missing = files.missing(); !missing.empty()) {
      if (answer["waiting_for"] == "") answer["waiting_for"] = missing;
      answer["state"] = "waiting_data";
      answer.erase("data");
      continue;
    }
    files.fingerprint();
    if (answer.contains("data")) answer["data"].update(checksums_of(files));
  }
  answer["updates"] = answer["evaluations"] = 0;
  answer["scores"] = run.score_names();
  answer["metrics"] = json::array();
  if (run.kind().needs_device()) return;
  const ExecutionOptions needs = run.execution();
  answer["memory_bytes"] = nullptr;
  answer["device"] = "cpu";
  answer["threads"] = needs.threads;
}

/// Derived runs of one resource class have the same settings, and trained runs of one resource class.
std::string resource_class_of(const DerivedRun& run, std::string trained) {
  if (run.chain.empty()) return trained;
  for (const DerivedOptions& derived : run.chain) {
    trained += canonical_settings(Identity::kResult, [&](SettingsVisitor& v) {
      v.table_of(derived.kind, [&] { derived.chosen().describe(v); });
    });
  }
  return sha256(trained).substr(0, 16);
}

json answer_for(DerivedRun& run) {
  json answer = answer_for(run.trained);
  if (!run.chain.empty()) become_derived(answer, run);
  const std::string trained = put_identity(answer, run);
  answer["resource_class"] = resource_class_of(run, resource_class_of(run.trained, trained));
  answer["local"] = run.chain.empty() ? local_text(run.trained) : local_text(run);
  return answer;
}

/// `written`: the settings of the trained run and of the last derivation.
json unused_in(const WrittenSettings& written, DerivedRun& run) {
  return unused_settings(written, [&](SettingsVisitor& v) {
    describe(v, run.trained);
    if (run.chain.empty()) return;
    v.table_of("derived", [&] { run.kind().describe_beside(v, *run.trained.task); });
  });
}

struct LineAtSeed {
  std::string_view before, after;
  uint32_t seed;  // every number of this type is a legal seed
};

/// `line` around the value of `train.seed`, as the harness writes it; nullopt for any other line, valid or not.
std::optional<LineAtSeed> split_at_seed(std::string_view line) {
  constexpr std::string_view kKey = "\"train.seed\":";
  const size_t key = line.find(kKey);
  if (key == std::string_view::npos || line.rfind(kKey) != key) return std::nullopt;
  const size_t begin = key + kKey.size();
  LineAtSeed at{.before = line.substr(0, begin), .after = {}, .seed = 0};
  const auto [end, error] = std::from_chars(line.data() + begin, line.data() + line.size(), at.seed);
  if (error != std::errc()) return std::nullopt;
  const auto digits = static_cast<size_t>(end - line.data()) - begin;
  if (digits > 1 && line[begin] == '0') return std::nullopt;  // 007 is no JSON
  at.after = line.substr(begin + digits);
  return at;
}

}  // namespace

json check_run(RunOptions options) {
  DerivedRun run{.trained = std::move(options), .chain = {}};
  return answer_for(run);
}

json CheckBatch::answer(std::string_view line) {
  const std::optional<LineAtSeed> at = split_at_seed(line);
  if (at && last_ && at->before == last_->before_seed && at->after == last_->after_seed) {
    last_->run.trained.train.seed = at->seed;
    put_identity(last_->answer, last_->run);
    return last_->answer;
  }

  last_.reset();
  WrittenSettings written;
  std::vector<WrittenSettings> derivations;
  try {
    json question = json::parse(line);
    json& settings = question.at("settings");
    if (!settings.is_object()) settings.get<json::object_t>();  // throws
    // Moved: copies of the values would take as long as parsing them.
    for (auto& [key, value] : settings.get_ref<json::object_t&>()) {
      written.values.emplace_hint(written.values.end(), key, std::move(value));
    }
    written.name = "settings";
    const auto folders = question.value("folders", std::map<std::string, std::string>());
    const std::string folder = question.value("folder", ".");
    if (const auto asked = question.find("derived"); asked != question.end()) {
      for (const json& one : *asked) derivations.push_back({.values = one, .locations = {}, .name = "settings"});
    }
    DerivedRun run{.trained = read_run_options(written, folder, folders), .chain = {}};
    if (question.value("smoke", false)) run.trained = smoke(std::move(run.trained));
    run.chain = read_derivations(derivations, run.trained, folder);
    json answer = answer_for(run);
    if (!derivations.empty()) written.values.merge(derivations.back().values);
    if (json unused = unused_in(written, run); !unused.empty()) answer["unused"] = std::move(unused);
    if (at && run.trained.train.seed == at->seed && !run.trained.task->data_follow_seed()) {
      last_.emplace(Last{std::string(at->before), std::string(at->after), std::move(run), answer});
    }
    return answer;
  } catch (const json::exception& error) {
    return {{"error", fmt::format("cannot parse the input line: {}", error.what())}, {"key", ""}};
  } catch (const UserError& error) {
    // The harness names the location of the key itself.
    std::string message = error.what();
    if (message.starts_with("settings: ")) message.erase(0, 10);
    for (const WrittenSettings& one : derivations) written.values.insert(one.values.begin(), one.values.end());
    return {{"error", message}, {"key", key_in(message, written)}};
  }
}

}  // namespace tearless::engine
