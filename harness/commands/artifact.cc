// `tearless artifact SWEEP… FILE.tar.gz`: an archive of results, as `tearless copy` makes it, with what tearless prints
// of them, and with checksums of all (artifact_files.h). It is made of the copy, in which nothing tells who trained.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/print.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/archive/archive.h"
#include "harness/commands/artifact_files.h"
#include "harness/commands/commands.h"
#include "harness/commands/copy_report.h"
#include "harness/commands/printed_views.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct ArtifactWords {
  std::vector<std::string> words;  // sweeps, then the file if there is no `out`
  std::string out;
  std::vector<fs::path> licences;
  bool small = false;
};

constexpr uint64_t kMaxLicence = 1 << 20;  // bytes

std::vector<ArtifactFile> licences_of(const std::vector<fs::path>& files) {
  std::vector<ArtifactFile> licences;
  for (const fs::path& file : files) {
    const std::string name = (fs::path(kLicences) / file.filename()).string();
    if (std::ranges::find(licences, name, &ArtifactFile::name) != licences.end())
      fail("--licence {}: another one has that name; rename one of them", file.string());
    licences.push_back({name, read_regular_file(file, kMaxLicence)});
  }
  std::ranges::sort(licences, {}, &ArtifactFile::name);  // as whoever makes it again finds them
  return licences;
}

void require_results(const Store& store, const std::vector<std::string>& sweeps, const Globals& globals) {
  for (const std::string& sweep : sweeps) {
    const std::vector<RunRecord> runs = store.runs_of(sweep);
    if (std::ranges::any_of(runs, [](const RunRecord& run) { return has_result(run.state); })) continue;
    fail("sweep {} has no result yet, so there is nothing to hand over; to train it: tearless run {}{}", sweep,
         shell_word(store.sweep(sweep)->grid_file), options_again(globals));
  }
}

void write(const Workspace& workspace, const ArtifactFile& file) {
  make_folders_unsynced((workspace.root() / file.name).parent_path());
  replace_unsynced(workspace.root() / file.name, file.bytes);
}

// Completes a copy of these sweeps.
ArtifactCounts add_artifact(const Workspace& workspace, const std::vector<std::string>& sweeps, const std::string& file,
                            const std::vector<ArtifactFile>& licences) {
  std::vector<std::string> names;
  for (const ArtifactFile& licence : licences) {
    write(workspace, licence);
    names.push_back(fs::path(licence.name).filename());
  }
  const PrintedResults printed = print_results(workspace, sweeps, file, names);
  for (const ArtifactFile& one : printed.files) write(workspace, one);
  json members = json::object();
  for (const std::string& member : archived_files(workspace.root()))
    members[member] = sha256_of_file(workspace.root() / member);
  write(workspace, {kManifest, sealed({{"format", kArtifactFormat},
                                       {"file", file},
                                       {"made_by", build_stamp()},
                                       {"made_at", utc_now()},
                                       {"sweeps", sweeps},
                                       {"counts", printed.counts},
                                       {"members", std::move(members)}})});
  return printed.counts;
}

int artifact(const ArtifactWords& given, const Globals& globals) {
  std::vector<std::string> words = given.words;
  if (!given.out.empty()) words.push_back(given.out);
  if (words.empty()) fail("name a sweep and a file: tearless artifact SWEEP FILE.tar.gz");
  const fs::path target = words.back();
  words.pop_back();
  if (!has_archive_name(target))
    fail("{}: an artefact is one file: tearless artifact SWEEP FILE.tar.gz", target.string());
  const std::vector<ArtifactFile> licences = licences_of(given.licences);
  const std::unique_ptr<const Store> store = require_store(globals);
  const std::vector<std::string> sweeps =
      whole_sweeps(*store, words.empty() ? std::vector<std::string>{"last"} : words);
  require_results(*store, sweeps, globals);
  ArtifactCounts counts;
  CopyOptions options{.results_only = true, .sweeps = sweeps, .complete = [&](const Workspace& copy) {
                        counts = add_artifact(copy, sweeps, target.filename(), licences);
                      }};
  if (given.small)
    options.needs = [&](const std::string& sweep) { return statistics_of_views(look_up_sweep({sweep}, globals)); };
  const CopyReport report = copy_workspace(Workspace(globals.workspace), target, options);
  report_edited_grids(*store, sweeps, globals);
  if (globals.json) {
    print_json({{"target", target.string()},
                {"sweeps", sweeps},
                {"counts", counts},
                {"in_work", report.in_work},
                {"with_paths", report.with_paths}});
    return kOk;
  }
  print("{}: {}\n", target.string(), text_of(counts));
  print_exceptions(report);
  if (licences.empty()) print("It has no licence file; to add one: --licence FILE\n");
  print("Next: tearless verify {} --again\n", shell_word(target.string()));
  return kOk;
}

}  // namespace

Action command_artifact(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<ArtifactWords>();
  app.add_option("what", words->words,
                 "sweeps (ids, names, grid files, last), then the file to make, FILE.tar.gz; without sweeps: last");
  app.add_option("-o,--out", words->out, "the file to make, if it is not the last word")->type_name("FILE.tar.gz");
  app.add_option("--licence", words->licences, "a licence file that goes with it; may be repeated")
      ->type_name("FILE")
      ->take_all();
  app.add_flag("--small", words->small,
               "leave out gradient norms and statistics of sentences of which no table, claim or figure is made");
  return [words, &globals] { return artifact(*words, globals); };
}

}  // namespace tearless::harness
