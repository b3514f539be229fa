#include "harness/service/host.h"

#include <signal.h>

#include <utility>

#include "base/error.h"
#include "harness/service/socket_path.h"

namespace tearless::harness {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

ServiceHost::ServiceHost(Store& store, const Workspace& workspace, ServiceOptions options, Service::Listener listener)
    : signals_(io_, SIGINT, SIGTERM),
      service_(io_, store, workspace, std::move(options), std::move(listener)),
      server_(io_, socket_path(workspace), [this](const Request& request) { return service_.answer(request); }, {}) {
  if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
}

void ServiceHost::run(const std::function<bool()>& done, const std::function<void(int)>& interrupted) {
  await_signal(interrupted);
  try {
    while (!done() && !service_.workspace_is_gone()) io_.run_one();
  } catch (const UserError&) {
    if (!service_.workspace_is_gone()) throw;  // else it could not write for that reason
  }
  signals_.cancel();
  if (!service_.workspace_is_gone()) return service_.finish_hooks();
  service_.scheduler().kill_all();
  fail(
      "{} was moved or deleted while its runs were under way; they were killed and continue from their last "
      "checkpoints: "
      "start tearless again with --workspace and the new place",
      service_.workspace().root().string());
}

void ServiceHost::await_signal(const std::function<void(int)>& interrupted) {
  signals_.async_wait([this, &interrupted](boost::system::error_code error, int) {
    if (error) return;
    interrupted(++interrupts_);
    await_signal(interrupted);
  });
}

}  // namespace tearless::harness
