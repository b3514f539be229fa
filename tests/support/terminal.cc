#include "tests/support/terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

namespace tearless::test {

Terminal::Terminal(const Command& command) {
  std::vector<std::string> texts = command.arguments;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  pid_ = ::forkpty(&master_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  ::signal(SIGHUP, SIG_DFL);  // the tests themselves may run under nohup
  ::setenv("TERM", "xterm", 1);
  for (const auto& [name, value] : command.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) ::_exit(127);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (master_ >= 0) ::close(master_);
}

bool Terminal::read_more() {
  pollfd readable{.fd = master_, .events = POLLIN, .revents = 0};
  constexpr int kMinute = 60'000;
  if (::poll(&readable, 1, kMinute) != 1) return false;
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(master_, buffer.data(), buffer.size());  // fails once the program has ended
  if (n <= 0) return false;
  shown_.append(buffer.data(), static_cast<size_t>(n));
  return true;
}

bool Terminal::shows(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (shown_.find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline || !read_more()) return false;
  }
  return true;
}

void Terminal::type(const std::string& characters) const {
  if (::write(master_, characters.data(), characters.size()) < 0) ::abort();
}

void Terminal::resize(unsigned short rows, unsigned short columns) const {
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (::ioctl(master_, TIOCSWINSZ, &size) != 0) ::abort();
}

void Terminal::signal(int number) const { ::kill(pid_, number); }

void Terminal::hang_up() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && ::getsid(pid) == pid_) ::kill(pid, SIGHUP);  // the kernel signals the foreground alone
  }
  ::close(std::exchange(master_, -1));
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

int Terminal::wait() {
  while (read_more()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tearless::test
