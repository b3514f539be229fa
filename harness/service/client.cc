#include "harness/service/client.h"

#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <istream>
#include <string>

#include "base/error.h"
#include "harness/store/writer.h"

namespace tearless::harness {
using nlohmann::json;

namespace {
constexpr auto kPatience = std::chrono::seconds(60);
}

std::optional<json> ask_service(const Workspace& workspace, const Request& request) {
  const std::optional<Writer> service = last_writer(workspace);
  if (!service || service->socket.empty()) return std::nullopt;
  boost::asio::local::stream_protocol::iostream stream;
  stream.expires_after(kPatience);
  stream.connect(boost::asio::local::stream_protocol::endpoint(service->socket.string()));
  if (!stream) return std::nullopt;  // no socket, or nobody behind it
  stream << to_json(request).dump() << "\n" << std::flush;
  std::string line;
  if (!std::getline(stream, line)) {
    const boost::system::error_code error = stream.error();
    if (error != boost::asio::error::timed_out && error != boost::asio::error::operation_aborted) return std::nullopt;
    fail("the tearless that works in {} does not answer ({}); is it stopped (Ctrl-Z)?", workspace.root().string(),
         error.message());
  }
  json answer = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) fail("the tearless that works in {} answers something else", workspace.root().string());
  if (const auto error = answer.find("error"); error != answer.end() && error->is_string()) {
    fail("{}", error->get<std::string>());
  }
  return answer;
}

}  // namespace tearless::harness
