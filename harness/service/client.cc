#include "harness/service/client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace asio = boost::asio;
using nlohmann::json;

namespace {

constexpr double kPatience = 60;                        // seconds
constexpr auto kLook = std::chrono::milliseconds(200);  // how often it is looked whether the service is stopped

// Sends a line and returns the one that answers it; nullopt if the connection ends before. UserError if nothing comes.
class Exchange {
 public:
  Exchange(const Workspace& workspace, const Writer& service) : workspace_(workspace), service_(service) {}

  std::optional<std::string> answer_to(const std::string& line) {
    boost::system::error_code error;
    refuse_if_stopped();  // its queue of connections may be full
    socket_.connect(asio::local::stream_protocol::endpoint(service_.socket.string()), error);
    if (error) return std::nullopt;  // no socket, or nobody behind it
    if (!waited([&](auto done) { asio::async_write(socket_, asio::buffer(line), done); })) return std::nullopt;
    std::string received;
    const auto length = waited([&](auto done) {
      asio::async_read_until(socket_, asio::dynamic_buffer(received, kMaxLineLength), '\n', done);
    });
    if (!length) return std::nullopt;
    return received.substr(0, *length - 1);
  }

 private:
  void refuse_if_stopped() const {
    if (!service_.process.is_stopped()) return;
    fail("the tearless that works in {} (process {}) is stopped, as by Ctrl-Z; to continue it: kill -CONT {}",
         workspace_.root().string(), service_.process.pid, service_.process.pid);
  }

  // The bytes that an operation of the socket has moved; nullopt if it failed.
  template <class Operation>
  std::optional<size_t> waited(Operation&& begin) {
    std::optional<std::pair<boost::system::error_code, size_t>> ended;
    begin([&ended](boost::system::error_code error, size_t size) { ended.emplace(error, size); });
    io_.restart();
    while (!ended && steady_seconds() < give_up_at_) {
      io_.run_one_for(kLook);
      if (!ended) refuse_if_stopped();
    }
    if (!ended) {
      fail("the tearless that works in {} (process {}) does not answer", workspace_.root().string(),
           service_.process.pid);
    }
    return ended->first ? std::nullopt : std::optional(ended->second);
  }

  const Workspace& workspace_;
  const Writer& service_;
  double give_up_at_ = steady_seconds() + kPatience;
  asio::io_context io_;
  asio::local::stream_protocol::socket socket_{io_};
};

}  // namespace

std::optional<json> ask_service(const Workspace& workspace, const Request& request) {
  const std::optional<Writer> service = last_writer(workspace);
  if (!service || service->socket.empty()) return std::nullopt;
  const std::optional<std::string> line = Exchange(workspace, *service).answer_to(to_json(request).dump() + "\n");
  if (!line) return std::nullopt;
  json answer = json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) fail("the tearless that works in {} answers something else", workspace.root().string());
  if (const auto error = answer.find("error"); error != answer.end() && error->is_string()) {
    fail("{}", error->get<std::string>());
  }
  return answer;
}

}  // namespace tearless::harness
