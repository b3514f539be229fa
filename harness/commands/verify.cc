// `tearless verify [--repair]`: checks that everything in a workspace is as it was written (folders/verify.h).
// `tearless verify FILE.tar.gz [--again]`: that an artefact is, and that its tables are what its runs give
// (verify_artifact.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/archive/open_archive.h"
#include "harness/commands/commands.h"
#include "harness/commands/verify_artifact.h"
#include "harness/folders/verify.h"
#include "harness/service/start.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

void print_report(const VerifyReport& report) {
  for (const std::string& sentence : report.repaired) print("repaired  {}\n", sentence);
  for (const Difference& difference : report.differences) {
    print("{}: {}  →  {}\n", difference.subject, difference.what, difference.todo);
  }
  for (const std::string& note : report.notes) print("{}\n", note);
  print("{} and {}: {}\n", counted(report.runs, "run"), counted(report.sweeps, "sweep"),
        report.differences.empty() ? "no differences"
                                   : counted(static_cast<int64_t>(report.differences.size()), "difference"));
}

json to_json(const VerifyReport& report) {
  json differences = json::array();
  for (const Difference& difference : report.differences) {
    differences.push_back({{"subject", difference.subject}, {"what", difference.what}, {"todo", difference.todo}});
  }
  return {{"runs", report.runs},
          {"sweeps", report.sweeps},
          {"differences", std::move(differences)},
          {"notes", report.notes},
          {"repaired", report.repaired}};
}

struct VerifyOptions {
  std::filesystem::path file;
  bool repair = false, again = false;
};

int verify_workspace(const Workspace& workspace, const VerifyOptions& options, const Globals& globals) {
  if (options.repair) end_idle_service(workspace);
  const VerifyReport report = options.repair ? repair(workspace) : verify(workspace);
  if (globals.json) {
    print_json(to_json(report));
  } else {
    print_report(report);
  }
  return report.differences.empty() ? kOk : kSomethingFailed;
}

// "all bytes equal": the end of the line that others can show.
std::string outcome_of(const ArtifactCheck& check, bool again) {
  if (!check.damage.empty()) return "NOT as it was made";
  if (!again) return fmt::format("{} as they were packed", counted(static_cast<int64_t>(check.members), "file"));
  const std::string texts = counted(std::ssize(check.texts), "text");
  if (!check.values.empty()) {
    const std::string differ = check.values.size() == 1 ? "value differs" : "values differ";
    return fmt::format("{} {}", check.values.size(), differ);
  }
  if (check.texts.empty()) return "all bytes equal";
  const std::string differ = fmt::format("{} {}", texts, check.texts.size() == 1 ? "differs" : "differ");
  return check.same_build ? differ + ", which the same build has made" : "values equal, " + differ;
}

int verify_file(const std::filesystem::path& file, bool again, const Globals& globals) {
  const ArtifactCheck check = check_artifact(file, again);
  if (!check.is_artifact) {
    if (again)
      fail("{} has no tables to make again: it is no artefact; to make one: tearless artifact SWEEP FILE.tar.gz",
           file.string());
    return verify_workspace(Workspace(open_workspace(file)), {}, globals);
  }
  const std::string line =
      fmt::format("{}, tearless {}: {}: {}", utc_now().substr(0, std::string_view("2026-01-31").size()), build_stamp(),
                  check.made_by.empty() ? file.string() : text_of(check.counts), outcome_of(check, again));
  if (globals.json) {
    print_json({{"file", file.string()},
                {"made_by", check.made_by},
                {"made_at", check.made_at},
                {"verified_by", build_stamp()},
                {"same_build", check.same_build},
                {"again", again},
                {"counts", check.counts},
                {"files", check.members},
                {"damage", check.damage},
                {"values", check.values},
                {"texts", check.texts},
                {"line", line}});
    return check.is_sound() ? kOk : kSomethingFailed;
  }
  for (const std::string& sentence : check.damage) print("{}\n", sentence);
  for (const std::string& phrase : check.values) print("value differs: {}\n", phrase);
  for (const std::string& name : check.texts) print("text differs: {}\n", name);
  if (!check.made_by.empty()) print("{}: made at {} by tearless {}\n", file.string(), check.made_at, check.made_by);
  print("{}\n", line);
  return check.is_sound() ? kOk : kSomethingFailed;
}

}  // namespace

Action command_verify(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<VerifyOptions>();
  app.add_option("file", options->file, "an artefact, FILE.tar.gz, instead of --workspace: its checksums are compared");
  app.add_flag("--repair", options->repair,
               "rebuild a wrong database, move damaged checkpoints to the run's damaged/; deletes nothing");
  app.add_flag("--again", options->again,
               "of an artefact: also make its tables, claims and figures again from its runs, and compare them: byte "
               "for byte with what this build has made, else value for value");
  return [options, &globals]() -> int {
    const std::filesystem::path& file = options->file.empty() ? globals.workspace : options->file;
    std::error_code unreachable;
    const bool is_file = std::filesystem::is_regular_file(file, unreachable);
    if (!is_file && !options->file.empty())
      fail("{}: there is no such archive; a folder is verified with --workspace", file.string());
    if (options->repair && is_file) refuse_archive(file);
    if (options->again && !is_file)
      fail(
          "--again is of an artefact: tearless verify FILE.tar.gz --again; to make one: tearless artifact SWEEP "
          "FILE.tar.gz");
    return is_file ? verify_file(file, options->again, globals)
                   : verify_workspace(Workspace(globals.workspace), *options, globals);
  };
}

}  // namespace tearless::harness
