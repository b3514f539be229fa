// How commands reach the service of a workspace: they ask the one that is there, or start one, which leaves when it has
// been idle for a while.
//
//   1. The command asks for the service's state. A service that answers does the work, unless it is to be replaced
//      (require_service()).
//   2. Otherwise the command starts `tearless daemon --detached --until-idle`, which takes the workspace's lock. Of
//      several that are started at once one gets the lock; the others end, and their commands ask that one.
//   3. If the service ends before it answers a request, the command repeats 1 to 3: requests are idempotent.
//   4. A service that was stopped on request leaves a mark (store/writer.h), and commands that watch it end, too. A
//      killed service leaves no mark, and they start another.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/service/facts.h"
#include "harness/service/protocol.h"

namespace tearless::harness {

/// How a command wants the service to be.
struct ServiceStart {
  std::optional<std::vector<std::string>> arguments = {};  // of `tearless daemon`; unset: any will do
  bool stays = false;                                      // it is to be a daemon
};

/// The last line that a service in the background writes to its parent: it answers requests.
inline constexpr std::string_view kServiceReady = "ready\n";

/// The file that gets the output of services that run in the background.
std::filesystem::path service_log(const Workspace& workspace);

/// What the workspace's service says of itself; nullopt if no service answers.
std::optional<ServiceFacts> facts_of_service(const Workspace& workspace);

/// As facts_of_service(), but waits for a service that is starting or ending. UserError if a process holds the
/// workspace's lock and does not answer, or the workspace is another user's.
std::optional<ServiceFacts> facts_of_own_service(const Workspace& workspace);

/// Makes sure that a service answers, and returns what it says of itself. Starts a service, in a session of its own, if
/// none runs. Replaces a service that leaves when it is idle: if it is idle and its build or arguments differ, or if
/// `start.stays`. What it prints before it answers (a database that had to be rebuilt) goes to standard error.
/// UserError, with its sentence, if it cannot be started.
ServiceFacts require_service(const Workspace& workspace, const ServiceStart& start);

/// Has the workspace's service carry out a request, and repeats it with another service if that one ends before it
/// answers. UserError if it is refused.
nlohmann::json request(const Workspace& workspace, const Request& request, const ServiceStart& start);

/// Ends a service that has nothing to do, for a process that is to write the database itself.
void end_idle_service(const Workspace& workspace);

}  // namespace tearless::harness
