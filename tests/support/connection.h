// A connection to a Unix-domain socket that sends and receives what a test wants.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tearless::test {

class Connection {
 public:
  /// The test fails if nobody listens there.
  explicit Connection(const std::filesystem::path& socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// False if the other side has closed before it has taken everything.
  bool send(std::string_view text);
  /// All that comes until the other side closes.
  std::string hear();
  bool is_hung_up() const;
  /// True when there is something to hear.
  bool is_answering() const;

 private:
  int fd_;
};

}  // namespace tearless::test
