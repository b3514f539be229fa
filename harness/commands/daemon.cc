// `tearless daemon`: the service of a workspace, until it is told to end. Its runs outlive it: the next one takes them
// over.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"
#include "base/sys.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/cli/control.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/output.h"
#include "harness/cli/submission_options.h"
#include "harness/commands/commands.h"
#include "harness/schedule/spawn.h"
#include "harness/service/client.h"
#include "harness/service/host.h"
#include "harness/store/workspace_format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr int kStartTries = 300;         // to find the daemon that was started in the background
constexpr int kBetweenStartTries = 100;  // milliseconds
constexpr int kTryAgain = 5;             // seconds until a full disk is tried again

struct DaemonOptions {
  bool background = false;
  ServiceFlags service;
};

// Devices as the training program sees them; none without a program.
std::vector<ProgramDevice> devices(const Globals& globals) {
  try {
    return Program::find(globals.engine, std::nullopt).probe().devices;
  } catch (const UserError& error) {
    notice(fmt::format("runs on the CPU only: {}", error.what()));
    return {};
  }
}

void say(const std::string& line) {
  std::fputs(fmt::format("{}  {}\n", utc_now(), printable(line)).c_str(), stdout);
  std::fflush(stdout);
  std::clearerr(stdout);  // a log that does not fit on a full disk is no reason to end; events.jsonl has the events too
}

// Returns when it was asked to end.
void serve_once(const ServiceOptions& options, const Workspace& workspace, Store& store, bool& has_begun) {
  ServiceHost host(store, workspace, options, [](const SchedulerEvent& event) {
    const std::string sweep = event.id.empty() ? fmt::format("{}  ", fmt::join(event.sweeps, ", ")) : "";
    say(sweep + sentence_of(event));
  });
  Service& service = host.service();
  service.begin();
  service.add_active_sweeps();
  has_begun = true;
  bool leave = false;
  const auto done = [&] { return (leave || service.asked_to_end()) && !service.scheduler().is_stopping_any(); };
  host.run(done, [&](int) { leave = true; });
  const size_t running = service.scheduler().progress().size();
  say(running == 0 ? "ends"
                   : fmt::format("ends; {} under way, which the next tearless daemon or run takes over",
                                 counted(static_cast<int64_t>(running), "run")));
}

int serve(const DaemonOptions& options, const Globals& globals) {
  fault::begin(fault::kDaemon);
  const Workspace workspace(globals.workspace);
  const std::unique_ptr<Store> store = open_unless_served(workspace);
  if (!store) {
    const ServiceFacts facts = service_facts_from(*ask_service(workspace, {.verb = Verb::kStatus}));
    fail("a tearless {} (process {}) works in {} already", facts.kind, facts.pid, workspace.root().string());
  }
  const ServiceOptions service = options.service.options("daemon", devices(globals));
  say(fmt::format("tearless daemon, process {}, works in {}", ::getpid(), fs::absolute(workspace.root()).string()));
  for (bool has_begun = false;;) {
    try {
      serve_once(service, workspace, *store, has_begun);
      return kOk;
    } catch (const MachineError& error) {
      // What could not be recorded is in the run folders: a new service finds it there, as after a kill.
      if (!has_begun) throw;
      say(fmt::format("{}. Runs that are under way continue; tries again in {} s", error.what(), kTryAgain));
      ::poll(nullptr, 0, 1000 * kTryAgain);
    }
  }
}

// Starts a daemon in a session of its own, with its output in WORKSPACE/daemon.log, and waits until it answers.
int serve_in_background(const DaemonOptions& options, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  require_this_format(workspace);
  make_folders(workspace.root());
  if (const auto facts = ask_service(workspace, {.verb = Verb::kStatus})) {
    const ServiceFacts service = service_facts_from(*facts);
    print("A tearless {} (process {}) works in {} already.\n", service.kind, service.pid, workspace.root().string());
    return service.kind == "daemon" ? kOk : kSomethingFailed;
  }
  const fs::path log = workspace.root() / "daemon.log";
  const int out = sys::open_for_writing(log.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  if (out < 0) fail("cannot write {}", log.string());
  SpawnRequest request{
      .arguments = {fs::read_symlink("/proc/self/exe").string(), "daemon", "--workspace", workspace.root().string()},
      .environment = {},
      .standard_output = out,
      .standard_error = out,
      .own_session = true};
  if (!globals.engine.empty()) request.arguments.insert(request.arguments.end(), {"--engine", globals.engine.string()});
  for (const std::string& argument : options.service.arguments()) request.arguments.push_back(argument);
  const pid_t pid = spawn(request);
  ::close(out);
  for (int tries = 0; tries < kStartTries; ++tries) {
    int status = 0;
    if (sys::waitpid(pid, &status, WNOHANG) == pid) fail("the daemon did not start; {} says why", log.string());
    if (ask_service(workspace, {.verb = Verb::kStatus})) {
      print("tearless daemon, process {}, works in {}; its log: {}\n", pid, workspace.root().string(), log.string());
      return kOk;
    }
    ::poll(nullptr, 0, kBetweenStartTries);
  }
  fail("the daemon (process {}) does not answer; {} may say why", pid, log.string());
}

}  // namespace

Action command_daemon(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<DaemonOptions>();
  app.add_flag("--background", options->background, "return when it works; its log is WORKSPACE/daemon.log");
  options->service.add_to(app);
  return [options, &globals] {
    return options->background ? serve_in_background(*options, globals) : serve(*options, globals);
  };
}

}  // namespace tearless::harness
