#include "harness/serve/serve.h"

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/print.h"
#include "harness/serve/http_server.h"
#include "harness/serve/pages.h"

namespace tearless::harness {
namespace {

constexpr auto kRestAfter = std::chrono::seconds(5);  // without a request or a look for a change

struct ServeOptions {
  int64_t port = 8765;
  ServerLimits limits = {};
};

int serve_pages(const ServeOptions& options, const Globals& globals) {
  std::signal(SIGPIPE, SIG_IGN);  // a browser may leave while it is answered
  boost::asio::io_context io(1);
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](boost::system::error_code error, int) {
    if (!error) io.stop();
  });
  Pages pages(globals);
  boost::asio::steady_timer rest(io);
  const auto awake = [&] {
    rest.expires_after(kRestAfter);
    rest.async_wait([&pages](boost::system::error_code error) {
      if (!error) pages.rest();
    });
  };
  const HttpServer server(
      io, static_cast<uint16_t>(options.port), options.limits,
      [&](const Target& target) {
        awake();
        return pages.answer(target);
      },
      [&] {
        awake();
        return pages.has_changed();
      });
  print("{}\n", server.address());
  std::fflush(stdout);
  notice("Open this address in a browser on this machine; Ctrl-C ends it.");
  io.run();
  return kOk;
}

}  // namespace

Action command_serve(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<ServeOptions>();
  app.add_option("--port", options->port, "of 127.0.0.1 (default: 8765); 0: any that is free")
      ->check(CLI::Range(0, 65535).description(""));
  // For tests.
  app.add_option("--connections", options->limits.connections)->group("");
  app.add_option("--request-seconds", options->limits.request_seconds)->group("");
  app.add_option("--changes-seconds", options->limits.changes_seconds)->group("");
  return [options, &globals] { return serve_pages(*options, globals); };
}

}  // namespace tearless::harness
