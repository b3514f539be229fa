// A service with its socket and its signals, to its end: what `tearless daemon` is.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "harness/runs/launcher.h"
#include "harness/service/service.h"

namespace tearless::harness {

struct Serving {
  /// Makes the launcher of the runs; called again when the service has to begin again after a full disk.
  std::function<std::unique_ptr<Launcher>(boost::asio::io_context&, Store&)> launcher;
  ServiceOptions options;
  double idle_seconds = 10;                     // after which a service that does not stay leaves
  std::function<void()> on_ready;               // called once, when it answers requests
  std::function<void(const std::string&)> say;  // gets the lines of the log
};

/// Returns when the service was told to end, by a request, SIGINT, SIGTERM or SIGHUP (not by SIGHUP if that was ignored
/// when this process began, as under nohup), or when it leaves because it is idle. A full or failing disk is waited
/// for. UserError if the workspace or its database is gone, or another service has the workspace. Attempts go on under
/// their supervisors, except if the workspace is gone, or another's: then they are killed. Borrows `store`, which must
/// be open for writing. REQUIRES: SIGPIPE is ignored.
void serve(Store& store, const Workspace& workspace, const Serving& serving);

}  // namespace tearless::harness
