// A service with its socket and its signals: what `tearless daemon` and `tearless run` are made of.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

#include "harness/service/server.h"
#include "harness/service/service.h"

namespace tearless::harness {

class ServiceHost {
 public:
  /// Borrows `store`, which must be open for writing and outlive the host.
  ServiceHost(Store& store, const Workspace& workspace, ServiceOptions options, Service::Listener listener);

  Service& service() { return service_; }

  /// Handles events until `done`, which is asked after each, or until the workspace is gone: attempts are killed then,
  /// because what they write would no longer be part of it, and UserError is thrown. `interrupted` is called with 1, 2
  /// … for each SIGINT, SIGTERM and SIGHUP; not for SIGHUP if it was ignored when this process began, as under nohup.
  void run(const std::function<bool()>& done, const std::function<void(int)>& interrupted);

 private:
  void await_signal(const std::function<void(int)>& interrupted);

  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  Service service_;
  Server server_;
  int interrupts_ = 0;
};

}  // namespace tearless::harness
