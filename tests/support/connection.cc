#include "tests/support/connection.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tearless::test {

Connection::Connection(const std::filesystem::path& socket) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ADD_FAILURE() << "no connection to " << socket << ": " << std::strerror(errno);
  }
}

Connection::~Connection() { ::close(fd_); }

bool Connection::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string Connection::hear() {
  std::string heard;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd_, buffer, sizeof buffer)) > 0;) heard.append(buffer, static_cast<size_t>(n));
  return heard;
}

bool Connection::is_hung_up() const {
  pollfd state{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLRDHUP)) != 0;
}

bool Connection::is_answering() const {
  pollfd state{.fd = fd_, .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) == 1;
}

}  // namespace tearless::test
