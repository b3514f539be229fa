// A training program that implements docs/run_directory.md without a model and fails on request, for tests of the
// harness. Its "training" is arithmetic on the settings, so that a resumed run must leave the same
// bytes.
//
//   fake.behaviour  succeed | diverge | crash | crash_once | stall | stall_once | out_of_memory | out_of_memory_once |
//   half_write |
//                   stop_once | refuse_late | flood (prints 100 MB) | big_file (writes 8 MB after its first checkpoint)
//                   | resume_differs (other losses after a checkpoint was read)
//   fake.updates    how many (default 5)
//   fake.sleep_ms   between two (default 0)
//   data.train      a file that must exist, else the run waits for it; training ends with kExitData for other bytes
//   than
//                   `check` saw
//   data.pair       likewise the beginning of two paths, that of a file .a and that of a file .b
//   fake.score.NAME the score NAME of its result, which has others too
//   fake.metric.NAME the metric NAME, at each update this number times the update; it has others too
//   fake.device     "cpu" or "cuda"
//   fake.threads    (default 1)
//   fake.warning    what `check` warns of
// A question with `derived` is about a derived run: its settings are those of `derived`, and its score is made from
// that of the run from which it derives: derived.extra more, or 1. derived.behaviour is as fake.behaviour,
// derived.sleep_ms as fake.sleep_ms.
// $FAKE_STOPS=N: below a folder `verifying`, its n-th attempt waits after update 3n until it is stopped, for n <= N.
// $FAKE_EXTRA: a number added to the scores of trained runs, as a program does that computes otherwise.
// $FAKE_PROGRAM: the name that `probe` answers.
// $FAKE_SCORES="test.bleu,beam8.test.bleu": it takes any settings, needs no files and makes one update, and its runs
// have these scores, each made of its name and the run's id (fake_score()); derived runs those that begin with their
// name.
// $FAKE_SENTENCES=N: of those that are BLEU, the sums of N sentences too, in outputs/<set>.stats.
// Every other key under model. and train. is accepted and changes the scores.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "base/settings.h"

namespace {

namespace fs = std::filesystem;
using namespace tearless;
using nlohmann::json;

constexpr int kCheckpointEvery = 3;
constexpr std::string_view kScorePrefix = "fake.score.", kMetricPrefix = "fake.metric.";
volatile sig_atomic_t g_stop = 0;

// --- check ---------------------------------------------------------------------------------------------------------

bool is_local(const std::string& key) { return key == "fake.sleep_ms" || key == "fake.threads"; }

// The settings that name files, and what follows their values in the files' paths.
const std::map<std::string, std::vector<std::string>> kData = {{"data.train", {""}}, {"data.pair", {".a", ".b"}}};

std::string toml_lines(const std::map<std::string, json>& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += key + " = " + toml_value(value) + "\n";
  return text;
}

// One checksum of all files that a setting names, and that of each in `each`. "" if one is missing.
std::string sha256_of_data(const std::string& key, const std::string& path, std::map<std::string, std::string>& each) {
  std::string all;
  for (const std::string& ending : kData.at(key)) {
    const std::string file = path + ending;
    if (!fs::exists(file)) return "";
    all += each[file] = sha256_of_file(file);
  }
  return sha256(all);
}

/// The scores of $FAKE_SCORES.
std::vector<std::string> asked_scores() {
  const char* names = std::getenv("FAKE_SCORES");
  std::vector<std::string> scores;
  std::stringstream words(names ? names : "");
  for (std::string name; std::getline(words, name, ',');) scores.push_back(name);
  return scores;
}

/// Between 10 and 20, with two digits after the point.
double fake_score(const std::string& name, const std::string& id) {
  return 10 + std::stoi(sha256(name + " " + id).substr(0, 6), nullptr, 16) % 1000 / 100.0;
}

/// The statistics of N sentences of 1,000 words each whose BLEU is that score: all four precisions are score / 100.
/// Which sentences have the words that are too many for equal shares depends on the run.
std::string fake_sentences(double score, int64_t count, const std::string& id) {
  constexpr int64_t kWords = 1000;
  const int64_t right = std::llround(score / 100 * static_cast<double>(kWords * count));
  const int64_t first = std::stoi(sha256(id).substr(0, 6), nullptr, 16);
  std::string text =
      "matches_1\tmatches_2\tmatches_3\tmatches_4\ttotals_1\ttotals_2\ttotals_3\ttotals_4\thypothesis_"
      "length\treference_length\n";
  for (int64_t i = 0; i < count; ++i) {
    const int64_t own = right / count + ((i + first) % count < right % count);
    for (int n = 0; n < 4; ++n) text += std::to_string(own) + "\t";
    for (int n = 0; n < 5; ++n) text += std::to_string(kWords) + "\t";
    text += std::to_string(kWords) + "\n";
  }
  return text;
}

/// Of a run with these settings.
std::vector<std::string> metrics_of(const std::map<std::string, json>& settings) {
  std::vector<std::string> metrics = {"dev.score", "train.loss"};
  for (const auto& [key, value] : settings) {
    if (key.starts_with(kMetricPrefix)) metrics.push_back(key.substr(kMetricPrefix.size()));
  }
  return metrics;
}

json refuse(const std::string& key, const std::string& why) { return {{"error", why}, {"key", key}}; }

json check(const json& question) {
  std::map<std::string, json> settings = question.at("settings");
  const bool takes_any = !asked_scores().empty();
  for (const auto& [key, value] : settings) {
    const bool known = takes_any || key.starts_with("fake.") || key.starts_with("model.") ||
                       key.starts_with("train.") || kData.contains(key);
    if (!known) return refuse(key, "unknown setting \"" + key + "\"");
  }
  if (settings["fake.behaviour"].is_null()) settings["fake.behaviour"] = "succeed";
  if (settings["fake.behaviour"] == "refuse") return refuse("fake.behaviour", "this behaviour is refused");
  if (settings["fake.updates"].is_null()) settings["fake.updates"] = takes_any ? 1 : 5;
  if (question.value("smoke", false)) settings["fake.updates"] = 2;
  const json folders = question.value("folders", json::object());
  std::string waiting_for;
  std::map<std::string, json> canonical_settings, local_settings;
  std::map<std::string, std::string> data;  // file → SHA-256
  for (const auto& [key, value] : settings) {
    if (takes_any || !kData.contains(key)) {
      (is_local(key) ? local_settings : canonical_settings)[key] = value;
      continue;
    }
    const fs::path path = fs::path(folders.value(key, question.value("folder", ""))) / value.get<std::string>();
    local_settings[key] = path.string();
    canonical_settings[key] = value;
    for (const std::string& ending : kData.at(key)) {
      if (!fs::exists(path.string() + ending)) waiting_for = path.string() + ending + " is missing; the test makes it";
    }
    // The bytes count, not the path.
    if (waiting_for.empty()) canonical_settings[key] = sha256_of_data(key, path, data);
  }
  const std::string canonical = toml_lines(canonical_settings);
  const auto setting = [&](const char* key, const json& otherwise) {
    return settings.contains(key) ? settings[key] : otherwise;
  };
  // A program may know neither resource class nor size; a run that is cut down is of another class.
  const bool unknown = settings["fake.shape"] == "unknown", whole = !question.value("smoke", false);
  const std::string shape = settings["fake.shape"].is_string() && !unknown ? settings["fake.shape"] : "";
  return {{"id", run_id(canonical)},
          {"canonical", canonical},
          {"local", toml_lines(local_settings)},
          {"data", waiting_for.empty() ? data : decltype(data)()},
          {"state", waiting_for.empty() ? "ready" : "waiting_data"},
          {"waiting_for", waiting_for},
          {"metrics", takes_any ? json() : json(metrics_of(settings))},
          {"parameters", unknown ? json() : json(1000)},
          {"memory_bytes", 1000},
          {"updates", settings["fake.updates"]},
          {"device", setting("fake.device", "cpu")},
          {"threads", setting("fake.threads", 1)},
          {"warnings", settings.contains("fake.warning") ? json::array({settings["fake.warning"]}) : json()},
          {"resource_class", shape + (shape.empty() || whole ? "" : " cut down")}};
}

json check_derived(const json& question) {
  json answer = check(question);
  for (const json& derived : question.value("derived", json::array())) {
    if (answer.contains("error")) return answer;
    std::map<std::string, json> settings = derived, local;
    for (const auto& [key, value] : settings) {
      if (!key.starts_with("derived.")) return refuse(key, "unknown setting \"" + key + "\"");
    }
    if (settings["derived.behaviour"] == "refuse") return refuse("derived.behaviour", "this behaviour is refused");
    if (settings["derived.behaviour"].is_null()) settings["derived.behaviour"] = "succeed";
    if (const auto slow = settings.extract("derived.sleep_ms")) local.insert({slow.key(), slow.mapped()});
    settings["derived.of"] = answer.at("id");
    const std::string canonical = toml_lines(settings);
    answer["id"] = run_id(canonical);
    answer["canonical"] = canonical;
    answer["local"] = toml_lines(local);
    answer["data"] = json::object();
    answer["updates"] = 0;
    answer["resource_class"] = "derived";
  }
  return answer;
}

int check_all() {
  for (std::string line; std::getline(std::cin, line);) std::cout << check_derived(json::parse(line)).dump() << "\n";
  return 0;
}

// --- train ---------------------------------------------------------------------------------------------------------

class Run {
 public:
  explicit Run(const fs::path& folder)
      : files_(folder),
        settings_(read_toml_settings(files_.settings()).values),
        local_(read_toml_settings(files_.local()).values),
        behaviour_(settings_.contains("derived.of") ? settings_.at("derived.behaviour")
                                                    : settings_.at("fake.behaviour")) {
    const char* attempt = std::getenv(kAttemptVariable);
    if (!attempt) {  // by hand
      std::optional<LockFile> lock = LockFile::try_acquire(files_.lock());
      if (!lock) fail("another process works on {}", folder.string());
      lock_.emplace(std::move(*lock));
    }
    attempt_ = attempt ? std::stoll(attempt) : files_.make_attempt();
    std::ofstream(folder / "starts.txt", std::ios::app) << attempt_ << "\n";  // for tests that count
  }

  int train() {
    if (fs::exists(files_.done())) return kExitDone;
    const bool first = attempt_ == 1;
    if (behaviour_ == "refuse_late") return kExitSettingsRefused;
    if (behaviour_ == "stop_once" && first) return kExitStopped;
    if (behaviour_ == "out_of_memory" || (behaviour_ == "out_of_memory_once" && first)) return kExitOutOfMemory;
    if (!has_its_data()) return kExitData;
    if (settings_.contains("derived.of")) return derive(first);
    const int64_t updates = settings_.at("fake.updates");
    const int64_t begin = restore();
    AppendFile metrics(files_.metrics(), kept_);
    for (int64_t step = begin + 1; step <= updates; ++step) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(local_.contains("fake.sleep_ms") ? local_["fake.sleep_ms"].get<int>() : 0));
      metrics.append(json{{"step", step}, {"name", "train.loss"}, {"value", loss(step)}}.dump() + "\n");
      for (const auto& [key, value] : settings_) {
        if (!key.starts_with(kMetricPrefix)) continue;
        const double reported = value.get<double>() * static_cast<double>(step);
        metrics.append(json{{"step", step}, {"name", key.substr(kMetricPrefix.size())}, {"value", reported}}.dump() +
                       "\n");
      }
      while (awaits_stop(step) && !g_stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (step == std::max<int64_t>(1, updates / 2)) misbehave(first);
      if (behaviour_ == "diverge" && step == std::max<int64_t>(1, updates / 2)) return diverged(step);
      if (g_stop || step % kCheckpointEvery == 0) {
        metrics.sync();
        checkpoint(step, metrics.size());
        if (behaviour_ == "big_file") write_atomically(files_.root() / "big", std::string(8 << 20, 'x'));
      }
      if (g_stop) return stopped(step);
    }
    metrics.append(json{{"step", updates}, {"name", "dev.score"}, {"value", score()}}.dump() + "\n");
    metrics.sync();
    return done(updates);
  }

 private:
  // The run from which it derives is beside this one, or in ../../runs.
  RunDirectory origin() const {
    const fs::path folders = fs::absolute(files_.root() / "").lexically_normal().parent_path().parent_path();
    const std::string of = settings_.at("derived.of");
    return RunDirectory(fs::exists(folders / of) ? folders / of : folders.parent_path() / "runs" / of);
  }

  // Outputs and score of a derived run: those of the run from which it derives, and a little more.
  int derive(bool first) const {
    for (int64_t slept = 0;
         slept < (local_.contains("derived.sleep_ms") ? local_.at("derived.sleep_ms").get<int64_t>() : 0); ++slept) {
      if (g_stop) return kExitStopped;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    misbehave(first);
    const std::optional<Done> done = read_done(origin());
    if (!done) fail("the run {} has no result yet", origin().id());
    if (done->outcome == "diverged") {
      write_done(files_, "diverged", done->step, "its run diverged", {});
      return kExitDiverged;
    }
    const json before = json::parse(read_file(origin().scores()));
    const double extra = settings_.contains("derived.extra") ? settings_.at("derived.extra").get<double>() : 1;
    const double score = before.begin().value().get<double>() + extra;
    make_folders(files_.outputs());
    write_atomically(files_.outputs() / "test.hyp", std::to_string(score) + "\n");
    const std::string name = settings_.at("derived.name");
    json scores = {{name + ".test.score", score}};
    for (const std::string& asked : asked_scores()) {
      if (asked.starts_with(name + ".")) scores[asked] = fake_score(asked, files_.id());
    }
    write_atomically(files_.scores(), scores.dump(2) + "\n");
    write_sentences(scores, name + ".");
    write_atomically(files_.attempt(attempt_) / "measured.json", sealed({{"seconds", 2.0}, {"updates", 0}}));
    write_done(files_, "done", 0, "derived", {"scores.json", "outputs/test.hyp"},
               {{origin().id() + "/scores.json", sha256_of_file(origin().scores())}});
    return kExitDone;
  }

  // Of the scores whose names begin so, those of $FAKE_SENTENCES.
  void write_sentences(const json& scores, const std::string& prefix) const {
    const char* count = std::getenv("FAKE_SENTENCES");
    if (!count) return;
    make_folders(files_.outputs());
    for (const auto& [name, score] : scores.items()) {
      const size_t dot = name.rfind('.');
      if (!name.starts_with(prefix) || dot == std::string::npos || name.find("bleu", dot) == std::string::npos)
        continue;
      write_atomically(files_.outputs() / (name.substr(prefix.size(), dot - prefix.size()) + ".stats"),
                       fake_sentences(score, std::stoll(count), files_.id()));
    }
  }

  // A number that depends on every setting, between 0 and 1.
  double fingerprint() const {
    std::string text;
    for (const auto& [key, value] : settings_) {
      if (key != "program.identity") text += key + value.dump();  // of the harness
    }
    return fnv1a32(text) / 4294967296.0;
  }
  double loss(int64_t step) const {
    const double error = behaviour_ == "resume_differs" && kept_ > 0 ? 1e-9 : 0;
    return 10.0 / static_cast<double>(step) + fingerprint() + error;
  }
  double score() const {
    const char* extra = std::getenv("FAKE_EXTRA");
    return 20.0 + fingerprint() + (extra ? std::stod(extra) : 0.0);
  }

  // Relative paths start from the run's folder.
  bool has_its_data() const {
    for (const auto& [key, endings] : kData) {
      if (!local_.contains(key)) continue;
      const std::string path = files_.root() / local_.at(key).get<std::string>();
      std::map<std::string, std::string> each;
      if (settings_.at(key) == sha256_of_data(key, path, each)) continue;
      std::cerr << path << " is not the file that this run was planned with" << std::endl;
      return false;
    }
    return true;
  }

  bool awaits_stop(int64_t step) const {
    const char* stops = std::getenv("FAKE_STOPS");
    const bool below = files_.root().parent_path().filename() == "verifying";
    return stops && below && attempt_ <= std::stoll(stops) && step >= 3 * attempt_;
  }

  void misbehave(bool first) const {
    if (behaviour_ == "stall" || (behaviour_ == "stall_once" && first)) {
      signal(SIGTERM, SIG_DFL);
      while (true) ::pause();
    }
    if (behaviour_ == "flood") {
      std::cout << "the beginning\n" << std::flush;
      const std::string lines(1 << 20, 'x');
      for (int i = 0; i < 100; ++i) std::cout << lines << "\n";
      std::cout << "the end" << std::endl;
    }
    if (behaviour_ == "half_write") {
      std::ofstream(files_.scores()) << R"({"test.score": 20.)" << std::flush;
      ::abort();
    }
    if (behaviour_ == "crash" || (behaviour_ == "crash_once" && first)) {
      std::cerr << "about to crash\nindex 7 out of range" << std::endl;
      ::_exit(1);
    }
  }

  int64_t restore() {
    const int64_t newest = files_.newest_checkpoint();
    if (newest == 0) return 0;
    const json manifest = json::parse(read_file(checkpoint_folder(newest) / "manifest.json"));
    kept_ = manifest.at("state").at("metrics_bytes");
    return newest;
  }

  fs::path checkpoint_folder(int64_t step) const { return files_.checkpoints() / ("step-" + std::to_string(step)); }

  void checkpoint(int64_t step, uint64_t metrics_bytes) const {
    const fs::path temporary = files_.checkpoints() / "tmp";
    remove_recursively(temporary);
    make_folders(temporary);
    write_atomically(temporary / "state.bin", std::to_string(step));
    const json state = {{"metrics_bytes", metrics_bytes}, {"metrics_sha256", sha256(read_file(files_.metrics()))}};
    const json files = {{"state.bin", sha256(std::to_string(step))}};
    write_atomically(temporary / "manifest.json", json{{"step", step}, {"state", state}, {"files", files}}.dump());
    publish_folder(temporary, checkpoint_folder(step));
  }

  void measure(int64_t updates) const {
    write_atomically(files_.attempt(attempt_) / "measured.json",
                     sealed({{"tokens_per_second", 1000.0},
                             {"threads", 1},
                             {"updates", updates},
                             {"seconds", 0.5 * static_cast<double>(updates)}}));
  }

  int stopped(int64_t step) const {
    measure(step);
    std::cerr << "stopped at update " << step << std::endl;
    return kExitStopped;
  }

  int diverged(int64_t step) const {
    measure(step);
    write_done(files_, "diverged", step, "the loss is not finite", {"metrics.jsonl"});
    return kExitDiverged;
  }

  int done(int64_t step) const {
    measure(step);
    json scores = {{"test.score", score()}, {"updates", step}};
    for (const std::string& name : asked_scores()) scores[name] = fake_score(name, files_.id());
    for (const auto& [key, value] : settings_) {
      if (key.starts_with(kScorePrefix)) scores[key.substr(kScorePrefix.size())] = value;
    }
    write_atomically(files_.scores(), scores.dump(2) + "\n");
    write_sentences(scores, "");
    write_done(files_, "done", step, "max_updates", {"scores.json", "metrics.jsonl"});
    return kExitDone;
  }

  RunDirectory files_;
  std::map<std::string, json> settings_, local_;
  std::string behaviour_;
  std::optional<LockFile> lock_;
  int64_t attempt_ = 0;
  uint64_t kept_ = 0;
};

int train(const fs::path& folder) {
  struct sigaction action {};
  action.sa_handler = [](int) { g_stop = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  return Run(folder).train();
}

int probe() {
  const char* numerics = std::getenv("FAKE_NUMERICS");
  const char* program = std::getenv("FAKE_PROGRAM");
  std::cout << json{{"program", program ? program : "fake-engine"},
                    {"version", "1"},
                    {"numerics", numerics ? std::stoi(numerics) : 1},
                    {"files", json::array()}}
            << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  fault::begin(fault::kProgram);
  try {
    const std::string verb = argc > 1 ? argv[1] : "";
    if (verb == "check") return check_all();
    if (verb == "probe") return probe();
    if (verb == "train" && argc == 3) return train(argv[2]);
    std::cerr << "usage: fake-engine check --json | probe --json | train DIR\n";
  } catch (const MachineError& error) {
    std::cerr << error.what() << "\n";
    return kExitMachine;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return kExitSettingsRefused;
}
