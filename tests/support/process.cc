#include "tests/support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/support/paths.h"

namespace fs = std::filesystem;

namespace tearless::test {
namespace {

void redirect(const fs::path& file, int descriptor) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || ::dup2(fd, descriptor) < 0) ::_exit(126);
}

[[noreturn]] void become(const Command& command, const fs::path& captured) {
  ::signal(SIGHUP, SIG_DFL);  // the tests themselves may run under nohup
  redirect(captured / "out", STDOUT_FILENO);
  redirect(captured / "err", STDERR_FILENO);
  ::setenv("TEARLESS_IDLE_SECONDS", "0", /*overwrite=*/0);  // or each `tearless run` would leave a service for a while
  for (const auto& [name, value] : command.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) ::_exit(126);
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Background::Background(const Command& command) {
  std::string name = (fs::temp_directory_path() / "tearless-out-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make a folder for a program's output");
  captured_ = name;
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) become(command, captured_);
}

Background::~Background() {
  if (!waited_) {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  fs::remove_all(captured_, ignored);
}

bool Background::has_ended() const {
  siginfo_t info{};
  return waited_ ||
         (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_);
}

void Background::signal(int number) const {
  if (!waited_) ::kill(pid_, number);
}

std::string Background::output() const { return fs::exists(captured_ / "out") ? read_text(captured_ / "out") : ""; }

Finished Background::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  waited_ = true;
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .output = read_text(captured_ / "out"),
          .errors = read_text(captured_ / "err")};
}

Finished run(const Command& command) { return Background(command).wait(); }

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace tearless::test
