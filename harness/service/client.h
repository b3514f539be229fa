// Asks the service of a workspace (protocol.h).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "harness/runs/workspace.h"
#include "harness/service/protocol.h"

namespace tearless::harness {

/// The answer of the workspace's service; nullopt if no service runs, or it ended before it answered: requests may be
/// repeated. UserError, with the service's own sentence, if it refuses the request; if its process is stopped; and if
/// it does not answer within a minute.
std::optional<nlohmann::json> ask_service(const Workspace& workspace, const Request& request);

}  // namespace tearless::harness
