// A server of pages on 127.0.0.1 for one person and their browser: GET and HEAD alone, one request a connection, in the
// thread of its io_context. It knows nothing of what the pages say.
//
// Whatever asks for what it should not gets one sentence: a Host that is not this machine 421, another method 405, no
// token or cookie 403 (access.h), a damaged request 400, a long header 431, a connection too many 503. Each connection
// has a time limit.
//
// `GET /events` is answered by lines of server-sent events, one for each change, as long as the browser listens.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "harness/serve/access.h"
#include "harness/serve/target.h"

namespace tearless::harness {

struct Reply {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body = {};
};

struct ServerLimits {
  size_t connections = 64;
  double request_seconds = 10;   // to send a request, and to take the answer
  double watch_seconds = 3600;   // of server-sent events; a browser asks again
  size_t header_bytes = 16'384;  // of a request
  double changes_seconds = 1;    // between two looks for a change, while somebody listens
};

class HttpServer {
 public:
  using Answer = std::function<Reply(const Target&)>;
  /// Whether what pages show has changed since the last call. It is called while somebody listens.
  using Changed = std::function<bool()>;

  /// Listens. `port` 0: any that is free. UserError if the port is taken. `answer` throws nothing.
  HttpServer(boost::asio::io_context& io, uint16_t port, const ServerLimits& limits, Answer answer, Changed changed);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:8765/?token=…".
  std::string address() const;

 private:
  class Session;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tearless::harness
