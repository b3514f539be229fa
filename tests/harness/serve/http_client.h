// A client of HTTP that says exactly what a test wants, on a plain socket: it has nothing in common with the server.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace tearless::test {

struct HttpAnswer {
  int status = 0;                                   // 0: the connection was closed without an answer
  std::map<std::string, std::string> headers = {};  // names in small letters
  std::string body = {}, bytes = {};                // bytes: all
};

// A connection to 127.0.0.1, closed at the end of the scope.
class Connection {
 public:
  explicit Connection(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    wait_at_most(60);
  }
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Connection() {
    if (fd_ >= 0) ::close(fd_);
  }

  void wait_at_most(double seconds) {
    const timeval time{static_cast<time_t>(seconds),
                       static_cast<suseconds_t>(1e6 * (seconds - static_cast<int>(seconds)))};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  }

  // False if the other side does not take it all.
  bool send(const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t n = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }

  // Reads until `end` is there, the other side closes, or the time is over; returns all that was read.
  std::string read_until(const std::string& end) {
    char buffer[65536];
    while (end.empty() || bytes_.find(end) == std::string::npos) {
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) {
        is_closed_ = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        break;
      }
      bytes_.append(buffer, static_cast<size_t>(n));
    }
    return bytes_;
  }
  bool is_closed() const { return is_closed_; }

  HttpAnswer answer() {
    HttpAnswer answer{.bytes = read_until("")};
    const size_t end = answer.bytes.find("\r\n\r\n");
    if (end == std::string::npos) return answer;
    answer.body = answer.bytes.substr(end + 4);
    answer.status = std::stoi(answer.bytes.substr(9, 3));
    for (size_t line = answer.bytes.find("\r\n") + 2; line < end + 2;) {
      const size_t line_end = answer.bytes.find("\r\n", line), colon = answer.bytes.find(": ", line);
      std::string name = answer.bytes.substr(line, colon - line);
      std::ranges::transform(name, name.begin(), ::tolower);
      answer.headers[name] = answer.bytes.substr(colon + 2, line_end - colon - 2);
      line = line_end + 2;
    }
    return answer;
  }

 private:
  int fd_;
  std::string bytes_;
  bool is_closed_ = false;
};

}  // namespace tearless::test
