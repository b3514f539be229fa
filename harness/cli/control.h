// How a command reaches the service of a workspace, or does without one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/cli/globals.h"
#include "harness/service/protocol.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// Has the workspace's service carry out the request. If there is none, this process does it, and starts no attempts:
/// attempts that it has to stop are waited for. UserError if the request is refused. `written`: the sweeps of a request
/// to submit, which this process has written to their folders.
nlohmann::json carry_out(const Request& request, const Workspace& workspace, const std::vector<Sweep>& written = {});

/// Opens the database for writing, unless the workspace has a service: null then. Waits a moment for a service that is
/// just starting or ending. Rebuilds a lost database first: otherwise finished runs would be trained again, and running
/// attempts would not be found. UserError if another process that is no service holds the workspace.
std::unique_ptr<Store> open_unless_served(const Workspace& workspace);

}  // namespace tearless::harness
