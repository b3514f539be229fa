// The commands that are nothing but a request to the service: pause, resume, cancel, retry; and stop.
#include <fmt/ranges.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/print.h"
#include "base/process_name.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"
#include "harness/service/client.h"
#include "harness/service/start.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace {

constexpr int kBetweenLooks = 50;  // milliseconds

// What a run is that a request cannot be meant for.
std::string what_it_is(const Store& store, const std::string& id) {
  const std::optional<RunRecord> run = store.run(id);
  if (!run) return "was deleted meanwhile";
  if (store.sweeps_of(id).empty()) return "is in no sweep any more; submit its grid again";
  return fmt::format("is {}{}", name_of(run->state), run->reason.empty() ? "" : ": " + run->reason);
}

// Of the secrets that these runs need those that this process has.
Variables secrets_for(const Store& store, const Selection& chosen) {
  std::set<std::string> sweeps(chosen.sweeps.begin(), chosen.sweeps.end());
  for (const std::string& run : chosen.runs) {
    for (const std::string& sweep : store.sweeps_of(run)) sweeps.insert(sweep);
  }
  Variables secrets;
  for (const std::string& sweep : sweeps) {
    const SweepPolicy policy = store.sweep(sweep)->policy;
    if (policy.environment) secrets.merge(secrets_in(own_variables(), *policy.environment));
  }
  return secrets;
}

int ask(const std::string& name, const std::vector<std::string>& words, ServiceFlags service, const Globals& globals) {
  const std::unique_ptr<const Store> store = require_store(globals);
  const Selection chosen = select_or_last(*store, words);
  nlohmann::json answer = {{"done", nlohmann::json::array()}, {"refused", nlohmann::json::array()}};
  const bool nothing = chosen.is_empty();
  if (!nothing) {
    Request asked{.name = name, .sweeps = chosen.sweeps, .runs = chosen.runs};
    if (name == "resume" || name == "retry") asked.secrets = secrets_for(*store, chosen);
    const Workspace workspace(globals.workspace);
    ServiceStart start;
    if (service.are_typed()) {
      service.keep_in(workspace);
      start.arguments = service.arguments();
      notice_if_without_effect(service, require_service(workspace, start), globals);
    }
    answer = request(workspace, asked, start);
  }
  const int code = answer.at("refused").empty() ? kOk : kSomethingFailed;
  if (globals.json) {
    print_json(answer);
    return code;
  }
  if (nothing) print("Nothing to do.\n");
  const auto list = [](const nlohmann::json& ids) {
    const std::vector<std::string> names = ids;
    if (names.size() <= 3) return fmt::format("{}", fmt::join(names, ", "));
    return fmt::format("{} and {} more", names.front(), names.size() - 1);
  };
  if (!answer.at("done").empty()) print("{}: {}\n", name, list(answer.at("done")));
  for (const std::string id : answer.at("refused")) {
    notice(fmt::format("{} cannot be done: run {} {}", name, id, what_it_is(*store, id)));
  }
  return code;
}

// The lock is the last that a service lets go.
void wait_for_end_of(const ProcessName& process) {
  while (process.is_alive()) ::poll(nullptr, 0, kBetweenLooks);
}

int stop(bool now, bool wait, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const std::optional<ServiceFacts> facts = facts_of_own_service(workspace);
  const int64_t pid = facts ? facts->pid : 0;
  const ProcessName process{.pid = pid, .start_ticks = process_start_ticks(pid).value_or(0), .boot_id = boot_id()};
  Request request{.name = "stop"};
  if (now) request.flags = {"now"};
  const bool has_asked = facts && ask_service(workspace, request);
  if (globals.json) {
    if (has_asked && wait) wait_for_end_of(process);
    print_json({{"process", has_asked ? nlohmann::json(pid) : nlohmann::json()}, {"ended", !has_asked || wait}});
    return kOk;
  }
  if (!has_asked) {
    print("Nothing to stop: no tearless works in {}.\n", workspace.root().string());
    return kOk;
  }
  if (now) {
    print("Process {} ends when its runs have written their checkpoints.\n", facts->pid);
  } else {
    print("Process {} ends; its runs continue, and the next tearless daemon or run adopts them.\n", facts->pid);
  }
  if (!wait) return kOk;
  std::fflush(stdout);
  wait_for_end_of(process);
  print("It has ended.\n");
  return kOk;
}

}  // namespace

Action command_request(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::Option* const what = app.add_option(
      "what", *words, "sweeps (ids, names, grid files, last, all) or runs (ids, places, states, axis=label)");
  const bool is_required = find_request_kind(app.get_name())->needs_words;
  what->required(is_required);
  if (!is_required) what->description(what->get_description() + "; default: last");
  const auto service = std::make_shared<ServiceFlags>();
  if (app.get_name() == "resume") service->add_limits_to(app);
  return [name = app.get_name(), words, service, &globals] { return ask(name, *words, *service, globals); };
}

Action command_stop(CLI::App& app, const Globals& globals) {
  const auto now = std::make_shared<bool>(false), wait = std::make_shared<bool>(false);
  app.add_flag("--now", *now, "stop the running attempts too, with a checkpoint");
  app.add_flag("--wait", *wait, "return when the service has ended, with --now after its runs");
  return [now, wait, &globals] { return stop(*now, *wait, globals); };
}

}  // namespace tearless::harness
