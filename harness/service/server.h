// The socket through which other processes of the same user talk to the service (protocol.h).
//
// A client gets one answer and then the connection ends. A client that sends too much gets an error; if it sends too
// slowly, or nothing, it is dropped. The service does not wait for it, but answers between two reads. Where no
// descriptors are left, clients wait.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "harness/service/protocol.h"

namespace tearless::harness {

class Server {
 public:
  using Answer = std::function<nlohmann::json(const Request&)>;

  struct Limits {
    size_t clients = 64;                         // at the same time; more are refused
    std::chrono::milliseconds patience{10'000};  // for the request, and again for taking the answer
  };

  /// Listens on `path` with mode 0600; replaces a socket that a killed service left there. Borrows `io`. UserError if
  /// the path cannot be used. REQUIRES: this process is the workspace's only service (it holds the writer's lock).
  Server(boost::asio::io_context& io, std::filesystem::path path, Answer answer, Limits limits);
  ~Server();  ///< removes the socket if it is still its own
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Processes that are asking at the moment.
  size_t clients() const { return *clients_; }

 private:
  class Session;
  void accept();

  boost::asio::io_context& io_;
  std::filesystem::path path_;
  std::pair<uint64_t, uint64_t> own_ = {};  // device and inode of the socket
  Answer answer_;
  Limits limits_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer rest_;
  std::shared_ptr<size_t> clients_ = std::make_shared<size_t>(0);
};

}  // namespace tearless::harness
