#include "harness/serve/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/time.h"
#include "base/utf8.h"
#include "harness/serve/pace.h"

namespace tearless::harness {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

constexpr double kRest = 0.2;          // seconds until another connection is accepted, after an error
constexpr double kDrain = 1;           // seconds that a client has to read an answer to what it was not asked for
constexpr double kSilence = 30;        // seconds after which a listener gets a line that says nothing
constexpr size_t kRefusedAtOnce = 64;  // connections too many that get a sentence; more are closed
constexpr const char* kPolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

std::chrono::nanoseconds duration_of(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Reply refusal(int status, const std::string& sentence) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = sentence + "\n"};
}

}  // namespace

struct HttpServer::State {
  State(asio::io_context& context, uint16_t port, const ServerLimits& server_limits, Answer answer_of,
        Changed has_changed)
      : io(context),
        acceptor(context),
        rest(context),
        tick(context),
        limits(server_limits),
        answer(std::move(answer_of)),
        changed(std::move(has_changed)) {
    try {
      acceptor = Tcp::acceptor(context, Tcp::endpoint(asio::ip::address_v4::loopback(), port));
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::address_in_use)
        fail("port {} of 127.0.0.1 is taken; name another one: --port N (0: any that is free)", port);
      fail("cannot listen on port {} of 127.0.0.1: {}; name another one: --port N", port, error.code().message());
    }
    ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    access.emplace(fmt::format("{}:{}", ::gethostid(), acceptor.local_endpoint().port()));
  }

  void accept(const std::shared_ptr<State>& self);
  void listen(const std::shared_ptr<State>& self, Session& session);
  void look(const std::shared_ptr<State>& self);

  asio::io_context& io;
  Tcp::acceptor acceptor;
  asio::steady_timer rest, tick;
  ServerLimits limits;
  Answer answer;
  Changed changed;
  std::optional<Access> access;
  size_t connections = 0, refused = 0;
  std::set<Session*> listeners = {};
  Pace pace{0};
};

// One connection. It lives as long as one of its operations is pending.
class HttpServer::Session : public std::enable_shared_from_this<HttpServer::Session> {
 public:
  Session(std::shared_ptr<State> state, Tcp::socket socket)
      : state_(std::move(state)),
        socket_(std::move(socket)),
        timer_(state_->io),
        is_refused_(state_->connections >= state_->limits.connections) {
    ++(is_refused_ ? state_->refused : state_->connections);
    parser_.header_limit(static_cast<uint32_t>(state_->limits.header_bytes));
    ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
  }
  ~Session() {
    --(is_refused_ ? state_->refused : state_->connections);
    state_->listeners.erase(this);
  }

  void start() {
    if (is_refused_) {
      if (state_->refused > kRefusedAtOnce) return;  // closed
      return send(refusal(503, fmt::format("{} connections are open, more than one person needs; close pages, or wait "
                                           "until they end",
                                           state_->connections)));
    }
    limit(state_->limits.request_seconds);
    http::async_read_header(socket_, buffer_, parser_, [self = shared_from_this()](Error error, size_t) {
      if (error) return self->refuse_damaged(error);
      self->serve();
    });
  }

  void tell(const char* text) {
    if (!sent_.empty()) {
      is_behind_ = true;
      return;
    }
    last_line_ = steady_seconds();
    write(text);
  }
  double last_line() const { return last_line_; }

 private:
  void limit(double seconds) {
    timer_.expires_after(duration_of(seconds));
    timer_.async_wait([weak = weak_from_this()](Error error) {
      const auto self = weak.lock();
      if (!error && self) self->close();
    });
  }

  void close() {
    Error ignored;
    socket_.close(ignored);
    timer_.cancel();
  }

  void refuse_damaged(Error error) {
    if (error == http::error::end_of_stream || error.category() != make_error_code(http::error::bad_target).category())
      return close();  // the client has left, or its time is over
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return send(refusal(431, fmt::format("the header of a request is longer than {} bytes; delete the cookies of "
                                           "this address and ask again",
                                           state_->limits.header_bytes)));
    }
    send(refusal(400, "this is no request of HTTP/1.1; open the page in a browser"));
  }

  void serve() {
    const auto& request = parser_.get();
    is_head_ = request.method() == http::verb::head;
    if (request.count(http::field::host) != 1 || !is_local_host(text_of(request[http::field::host]))) {
      return send(
          refusal(421, "only localhost and 127.0.0.1 are served; from another machine, forward the port: ssh -L"));
    }
    if (request.method() != http::verb::get && !is_head_) {
      return send(refusal(405, "these pages only show; GET and HEAD are answered"));
    }
    const bool has_body = request.count(http::field::transfer_encoding) > 0 || parser_.content_length().value_or(0) > 0;
    const std::optional<Target> target = parse_target(text_of(request.target()));
    if (!target || has_body) return send(refusal(400, "no page has such an address; begin at /"));
    if (target->path == "/" && state_->access->is_token(target->value("token"))) return let_in();
    if (!has_cookie()) {
      return send(
          refusal(403, "open the address that `tearless serve` printed: it has the token that this page needs"));
    }
    if (target->path == "/events") return listen();
    send(state_->answer(*target));
  }

  static std::string_view text_of(beast::string_view text) { return {text.data(), text.size()}; }

  bool has_cookie() const {
    const auto [begin, end] = parser_.get().equal_range(http::field::cookie);
    return std::any_of(begin, end,
                       [&](const auto& field) { return state_->access->has_cookie(text_of(field.value())); });
  }

  std::string head(int status, const std::string& type) const {
    return fmt::format(
        "HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Type: {}\r\nContent-Security-Policy: {}\r\n"
        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: "
        "same-origin\r\n",
        status, text_of(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))), type, kPolicy);
  }

  void let_in() {
    finish(head(303, "text/plain; charset=utf-8") +
           fmt::format("Cache-Control: no-store\r\nLocation: /\r\nSet-Cookie: {}\r\nContent-Length: 0\r\n\r\n",
                       state_->access->cookie()));
  }

  void send(const Reply& reply) {
    const std::string tag = fmt::format("\"{}\"", sha256(reply.body).substr(0, 32));
    const bool is_known = reply.status == 200 && text_of(parser_.get()[http::field::if_none_match]) == tag;
    std::string text = head(is_known ? 304 : reply.status, reply.type);
    text += reply.status == 200 ? fmt::format("Cache-Control: private, no-cache\r\nETag: {}\r\n", tag)
                                : std::string("Cache-Control: no-store\r\n");
    if (reply.status == 405) text += "Allow: GET, HEAD\r\n";
    if (!is_known) text += fmt::format("Content-Length: {}\r\n", reply.body.size());
    text += "\r\n";
    if (!is_known && !is_head_) text += reply.body;
    finish(std::move(text));
  }

  // Writes the answer and waits for the client to leave: closed at once, what it still sends would make its system
  // throw the answer away.
  void finish(std::string text) {
    sent_ = std::move(text);
    limit(is_refused_ ? kDrain : state_->limits.request_seconds);
    asio::async_write(socket_, asio::buffer(sent_), [self = shared_from_this()](Error error, size_t) {
      if (error) return self->close();
      Error ignored;
      self->socket_.shutdown(Tcp::socket::shutdown_send, ignored);
      self->limit(kDrain);
      self->drain();
    });
  }

  void drain() {
    socket_.async_read_some(asio::buffer(received_), [self = shared_from_this()](Error error, size_t) {
      error ? self->close() : self->drain();
    });
  }

  void listen() {
    if (is_head_) return finish(head(200, "text/event-stream") + "Cache-Control: no-store\r\n\r\n");
    until_ = steady_seconds() + state_->limits.watch_seconds;
    last_line_ = steady_seconds();
    write(head(200, "text/event-stream") + "Cache-Control: no-store\r\n\r\nretry: 2000\n\n");
    drain();  // ends when the browser leaves
    state_->listen(state_, *this);
  }

  // A part of server-sent events.
  void write(std::string text) {
    sent_ = std::move(text);
    limit(state_->limits.request_seconds);
    asio::async_write(socket_, asio::buffer(sent_), [self = shared_from_this()](Error error, size_t) {
      if (error) return self->close();
      self->sent_.clear();
      self->limit(std::max(0.0, self->until_ - steady_seconds()));
      if (std::exchange(self->is_behind_, false)) self->tell(kChange);
    });
  }

 public:
  static constexpr const char* kChange = "data: changed\n\n";
  static constexpr const char* kNothing = ": nothing\n\n";

 private:
  std::shared_ptr<State> state_;
  Tcp::socket socket_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_{1 << 17};
  http::request_parser<http::empty_body> parser_;
  std::string sent_;
  std::array<char, 4096> received_;
  bool is_refused_, is_head_ = false, is_behind_ = false;
  double until_ = 0, last_line_ = 0;
};

void HttpServer::State::accept(const std::shared_ptr<State>& self) {
  acceptor.async_accept([this, self](Error error, Tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      std::make_shared<Session>(self, std::move(socket))->start();
      return accept(self);
    }
    rest.expires_after(duration_of(kRest));  // too many open files, say
    rest.async_wait([this, self](Error stopped) {
      if (!stopped) accept(self);
    });
  });
}

void HttpServer::State::listen(const std::shared_ptr<State>& self, Session& session) {
  const bool is_first = listeners.empty();
  listeners.insert(&session);
  if (!is_first) return;
  changed();
  pace = Pace(cpu_seconds());
  look(self);
}

void HttpServer::State::look(const std::shared_ptr<State>& self) {
  tick.expires_after(duration_of(limits.changes_seconds));
  tick.async_wait([this, self](Error error) {
    if (error || listeners.empty()) return;
    if (changed()) pace.change();
    const double now = steady_seconds();
    const bool tells = pace.tells(now, cpu_seconds());
    for (Session* const session : std::set<Session*>(listeners)) {
      if (tells)
        session->tell(Session::kChange);
      else if (now - session->last_line() >= kSilence)
        session->tell(Session::kNothing);
    }
    look(self);
  });
}

HttpServer::HttpServer(asio::io_context& io, uint16_t port, const ServerLimits& limits, Answer answer, Changed changed)
    : state_(std::make_shared<State>(io, port, limits, std::move(answer), std::move(changed))) {
  state_->accept(state_);
}

HttpServer::~HttpServer() {
  Error ignored;
  state_->acceptor.close(ignored);
  state_->tick.cancel();
  state_->rest.cancel();
}

std::string HttpServer::address() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", state_->acceptor.local_endpoint().port(),
                     state_->access->token());
}

}  // namespace tearless::harness
