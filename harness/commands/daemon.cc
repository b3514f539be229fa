// `tearless daemon`: the service of a workspace, until it is told to end. Other commands start it with --detached and
// --until-idle. Its runs outlive it: the next one takes them over.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"
#include "base/print.h"
#include "base/sys.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/check/recorded_looks.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/folders/rebuild.h"
#include "harness/grants/launchers.h"
#include "harness/grants/worker_launcher.h"
#include "harness/launch/local_launcher.h"
#include "harness/launch/local_options.h"
#include "harness/service/client.h"
#include "harness/service/serve.h"
#include "harness/service/start.h"
#include "harness/slurm/slurm.h"
#include "harness/slurm/worker_program.h"
#include "harness/store/ownership.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr int kTries = 20;          // to find either a service or the lock free
constexpr int kStartTries = 600;    // until another service that is starting answers
constexpr int kBetweenTries = 100;  // milliseconds
constexpr const char* kIdleVariable = "TEARLESS_IDLE_SECONDS";

struct DaemonOptions {
  bool background = false;  // start one and return
  bool detached = false;    // be that one
  bool until_idle = false;
  bool take_over = false;
  ServiceFlags service;
};

// What the newest sweep with an executor knows of it.
WorkerLauncher::MachinesOf slurm_of(const Store& store, const Workspace& workspace) {
  const auto commands = [] { return std::make_unique<SlurmPrograms>(steady_seconds); };
  const auto list = std::make_shared<JobList>(commands(), steady_seconds);
  return [&store, workspace, commands, list](const std::string& executor) -> std::unique_ptr<Machines> {
    std::optional<Sweep> newest;
    for (const Sweep& sweep : store.sweeps()) {
      const bool has_it = sweep.policy.executor == executor && !sweep.policy.executor_section.is_null();
      if (has_it && (!newest || sweep.submission.newest > newest->submission.newest)) newest = sweep;
    }
    if (!newest) return nullptr;
    return std::make_unique<Slurm>(workspace, newest->policy.executor_section.get<Executor>(),
                                   worker_program(workspace), list, commands(), steady_seconds);
  };
}

std::unique_ptr<Launcher> launcher_of(boost::asio::io_context& io, Store& store, const Workspace& workspace,
                                      const LocalLimits& limits) {
  LocalLauncher::Options options = local_options(limits);
  options.peaks = store.memory_peaks();
  options.on_peak = [&store](const std::string& resource_class, int64_t bytes) {
    store.put_memory_peak(resource_class, bytes);
  };
  return std::make_unique<Launchers>(std::make_unique<LocalLauncher>(io, std::move(options)), [&store, workspace] {
    return std::make_unique<WorkerLauncher>(workspace, steady_seconds, slurm_of(store, workspace));
  });
}

LookTaker looks_in(const Workspace& workspace) {
  return [workspace](const std::string& sweep, bool may_ask, const std::function<void(const std::string&)>& say) {
    std::vector<std::string> asked;
    for (const LookTaken& look : take_looks(workspace, sweep, may_ask)) {
      say(sentence_of(look));
      asked.insert(asked.end(), look.asks.begin(), look.asks.end());
    }
    return asked;
  };
}

// Null if another service answers. Waits for one that is starting or ending.
std::unique_ptr<Store> open_unless_served(const Workspace& workspace) {
  for (int tries = 1;; ++tries) {
    const bool is_held = has_writer(workspace);
    if (is_held && facts_of_service(workspace)) return nullptr;
    const std::optional<Writer> writer = last_writer(workspace);
    const bool is_last = tries >= (is_held && writer && writer->is_service ? kStartTries : kTries);
    try {
      if (!is_held || is_last) {
        rebuild_if_lost(workspace);  // else finished runs would be trained again, and running attempts not be found
        rebuild_if_earlier(workspace);
        return Store::open_writer(workspace);
      }
    } catch (const UserError&) {
      if (is_last || !has_writer(workspace)) throw;  // else another one was quicker
    }
    ::poll(nullptr, 0, kBetweenTries);
  }
}

// Writes lines to standard output. Of a detached service that is a pipe to the process that started it, until
// it answers: lines are kept until then.
class Log {
 public:
  Log(const Workspace& workspace, bool is_detached) : waits_(is_detached) {
    if (!is_detached) return;
    const fs::path file = service_log(workspace);
    log_ = sys::open_for_writing(file.c_str(), O_WRONLY | O_CREAT | O_APPEND);
    if (log_ < 0) fail_errno("write", file);
  }

  void say(const std::string& line) {
    kept_ += fmt::format("{}  {}\n", utc_now(), printable(line));
    if (!waits_) write(std::exchange(kept_, ""));
  }

  // The service answers.
  void begin() {
    if (std::exchange(waits_, false)) {
      write(std::string(kServiceReady));
      for (const int output : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(log_, output);
      ::close(log_);
    }
    write(std::exchange(kept_, ""));
  }

 private:
  // A log that does not fit on a full disk is no reason to end; events.jsonl has the events too.
  static void write(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    std::clearerr(stdout);
  }

  bool waits_;
  int log_ = -1;
  std::string kept_;
};

int serve(DaemonOptions options, const Globals& globals) {
  fault::begin(fault::kDaemon);
  std::signal(SIGPIPE, SIG_IGN);  // whoever reads its output may leave
  const Workspace workspace(globals.workspace);
  require_own(workspace);
  announce_if_new(workspace);
  options.service.keep_in(workspace);
  std::unique_ptr<Store> store = open_unless_served(workspace);
  if (!store && options.detached) return kOk;  // the other one does the work
  if (!store) {
    const std::optional<ServiceFacts> facts = facts_of_service(workspace);
    if (facts && facts->stays) {
      fail("a tearless daemon (process {}) works in {} already", facts->pid, workspace.root().string());
    }
    ask_service(workspace, {.name = "stop", .flags = {"hand_over"}});
    store = open_unless_served(workspace);
    if (!store) fail("another tearless works in {}; try again", workspace.root().string());
  }
  Log log(workspace, options.detached);
  const auto launcher = [&](boost::asio::io_context& io, Store& open) {
    return launcher_of(io, open, workspace, options.service.limits);
  };
  Serving serving{.launcher = launcher,
                  .options = {.stays = !options.until_idle,
                              .arguments = options.service.arguments(),
                              .on_end = options.service.on_end,
                              .take_looks = looks_in(workspace)},
                  .on_ready = [&log] { log.begin(); },
                  .say = [&log](const std::string& line) { log.say(line); }};
  if (const char* seconds = std::getenv(kIdleVariable)) serving.idle_seconds = std::atof(seconds);
  log.say(fmt::format("tearless {}, process {}, works in {}", options.until_idle ? "service" : "daemon", ::getpid(),
                      fs::absolute(workspace.root()).string()));
  harness::serve(*store, workspace, serving);
  return kOk;
}

int serve_in_background(DaemonOptions options, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  options.service.keep_in(workspace);
  const std::vector<std::string> arguments = options.service.arguments();
  const std::optional<ServiceFacts> before = facts_of_service(workspace);
  const ServiceFacts facts = require_service(workspace, {.arguments = arguments, .stays = true});
  const bool was_there = before && before->pid == facts.pid;
  print("{} (process {}) works in {}{}; its log: {}\n", was_there ? "A tearless daemon" : "tearless daemon", facts.pid,
        workspace.root().string(), was_there ? " already" : "", service_log(workspace).string());
  notice_if_without_effect(options.service, facts, globals);
  return kOk;
}

}  // namespace

Action command_daemon(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<DaemonOptions>();
  app.add_flag("--background", options->background, "return once it is ready; its log is WORKSPACE/service.log");
  app.add_flag("--take-over", options->take_over,
               "of a workspace on a network disk, from a machine whose service does not run any more");
  app.add_flag("--detached", options->detached)->group("");
  app.add_flag("--until-idle", options->until_idle)->group("");
  options->service.add_to(app);
  return [options, &globals] {
    if (options->take_over) take_over(Workspace(globals.workspace), [](const std::string& line) { notice(line); });
    return options->background ? serve_in_background(*options, globals) : serve(*options, globals);
  };
}

}  // namespace tearless::harness
