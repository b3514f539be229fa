#include "harness/cli/control.h"

#include <poll.h>

#include <filesystem>

#include "base/error.h"
#include "base/lock_file.h"
#include "harness/cli/output.h"
#include "harness/service/client.h"
#include "harness/service/host.h"
#include "harness/store/rebuild.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr int kTries = 20;          // to find either a service or the lock free
constexpr int kBetweenTries = 100;  // milliseconds

void rebuild_if_lost(const Workspace& workspace) {
  std::error_code absent;
  if (fs::exists(workspace.database()) ||
      fs::directory_iterator(workspace.runs(), absent) == fs::directory_iterator()) {
    return;
  }
  const RebuildReport report = rebuild(workspace);
  print("{} was missing: rebuilt from {} run folders\n", workspace.database().string(), report.runs);
  for (const std::string& sentence : report.passed_over) notice(fmt::format("skipped: {}", sentence));
}

nlohmann::json carry_out_here(const Request& request, const std::vector<Sweep>& written, Store& store,
                              const Workspace& workspace) {
  ServiceHost host(store, workspace, {.kind = "command", .devices = {}}, [](const SchedulerEvent&) {});
  Scheduler& scheduler = host.service().scheduler();
  scheduler.start_no_more();
  host.service().begin();
  const auto how = request.verb == Verb::kRetry ? Scheduler::Add::kRetry : Scheduler::Add::kSubmit;
  for (const Sweep& sweep : written) host.service().submit(sweep, how);
  const nlohmann::json answer = written.empty() ? host.service().answer(request) : nlohmann::json::object();
  bool in_a_hurry = false;
  host.run([&] { return in_a_hurry || !scheduler.is_stopping_any(); }, [&](int) { in_a_hurry = true; });
  return answer;
}

}  // namespace

std::unique_ptr<Store> open_unless_served(const Workspace& workspace) {
  for (int tries = 1;; ++tries) {
    if (fs::exists(workspace.root()) && LockFile::is_held(workspace.lock())) {
      if (ask_service(workspace, {.verb = Verb::kStatus})) return nullptr;
      if (tries < kTries) {
        ::poll(nullptr, 0, kBetweenTries);
        continue;
      }
    }
    rebuild_if_lost(workspace);
    return Store::open_writer(workspace);
  }
}

nlohmann::json carry_out(const Request& request, const Workspace& workspace, const std::vector<Sweep>& written) {
  while (true) {
    if (const std::unique_ptr<Store> store = open_unless_served(workspace)) {
      const nlohmann::json answer = carry_out_here(request, written, *store, workspace);
      if (const auto error = answer.find("error"); error != answer.end()) fail("{}", error->get<std::string>());
      return answer;
    }
    if (const std::optional<nlohmann::json> answer = ask_service(workspace, request)) return *answer;
    // The service has ended in between: the workspace is free, or its successor answers.
  }
}

}  // namespace tearless::harness
