#include "harness/service/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "base/file_stamp.h"
#include "base/files.h"

namespace tearless::harness {
namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;

namespace {

constexpr auto kRest = std::chrono::milliseconds(200);  // until another client is accepted, after an error

std::string line_of(const nlohmann::json& answer) {
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// A supervisor that inherited the socket would keep it open after the service has ended.
void close_on_exec(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

// The socket's mode keeps other users out. Not every system heeds it, so the kernel is asked too.
bool is_same_user(Protocol::socket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace

// Reads one request, writes one answer, and waits for the client to leave. It lives as long as one of its operations is
// pending.
class Server::Session : public std::enable_shared_from_this<Server::Session> {
 public:
  Session(asio::io_context& io, Protocol::socket socket, const Answer& answer, const Limits& limits,
          std::shared_ptr<size_t> clients)
      : socket_(std::move(socket)),
        timer_(io),
        answer_(answer),
        patience_(limits.patience),
        clients_(std::move(clients)) {
    ++*clients_;
  }
  ~Session() { --*clients_; }

  void start() {
    wait();
    asio::async_read_until(socket_, asio::dynamic_buffer(received_, kMaxLineLength), '\n',
                           [self = shared_from_this()](boost::system::error_code error, size_t length) {
                             if (error == asio::error::not_found)
                               return self->send({{"error", "the request is too long"}});
                             if (error) return self->end();
                             self->send(self->answer_to(self->received_.substr(0, length - 1)));
                           });
  }

  void send(const nlohmann::json& answer) {
    wait();
    sent_ = line_of(answer);
    asio::async_write(socket_, asio::buffer(sent_), [self = shared_from_this()](boost::system::error_code, size_t) {
      boost::system::error_code ignored;
      self->socket_.shutdown(Protocol::socket::shutdown_send, ignored);
      self->drain();
    });
  }

 private:
  nlohmann::json answer_to(const std::string& line) const {
    try {
      fault::point(fault::kAnswer, "request");
      const nlohmann::json answer = answer_(request_from(line));
      fault::point(fault::kAnswer, "answer");
      return answer;
    } catch (const UserError& error) {
      return {{"error", error.what()}};
    }
  }

  // A socket that is closed with bytes unread resets the connection, and the client may miss its answer.
  void drain() {
    received_.resize(4096);
    socket_.async_read_some(
        asio::buffer(received_),
        [self = shared_from_this()](boost::system::error_code error, size_t) { error ? self->end() : self->drain(); });
  }

  void wait() {
    timer_.expires_after(patience_);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error) self->socket_.close();
    });
  }
  void end() {
    timer_.cancel();
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

  Protocol::socket socket_;
  asio::steady_timer timer_;
  const Answer& answer_;
  std::chrono::milliseconds patience_;
  std::shared_ptr<size_t> clients_;
  std::string received_, sent_;
};

Server::Server(asio::io_context& io, std::filesystem::path path, Answer answer, Limits limits)
    : io_(io), path_(std::move(path)), answer_(std::move(answer)), limits_(limits), acceptor_(io), rest_(io) {
  remove_file(path_);
  try {
    acceptor_.open();
    close_on_exec(acceptor_.native_handle());
    const mode_t before = ::umask(0177);  // the socket never exists with a wider mode
    boost::system::error_code error;
    acceptor_.bind(Protocol::endpoint(path_.string()), error);
    ::umask(before);
    if (error) throw boost::system::system_error(error);
    acceptor_.listen();
    own_ = identity_of_file(path_);
  } catch (const boost::system::system_error& error) {
    fail("cannot listen on {}: {}", path_.string(), error.code().message());
  }
  accept();
}

Server::~Server() {
  try {  // not that of a service in a folder that has the place of its deleted one
    if (identity_of_file(path_) == own_) remove_file(path_);
  } catch (const UserError&) {  // the next service replaces it
  }
}

void Server::accept() {
  acceptor_.async_accept([this](boost::system::error_code error, Protocol::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {  // such as no descriptors left; the client stays in the queue of the socket
      rest_.expires_after(kRest);
      return rest_.async_wait([this](boost::system::error_code ended) {
        if (!ended) accept();
      });
    }
    close_on_exec(socket.native_handle());
    if (is_same_user(socket)) {
      const bool full = *clients_ >= limits_.clients;
      const auto session = std::make_shared<Session>(io_, std::move(socket), answer_, limits_, clients_);
      if (full) {
        session->send({{"error", "too many processes ask at the same time; try again"}});
      } else {
        session->start();
      }
    }
    accept();
  });
}

}  // namespace tearless::harness
