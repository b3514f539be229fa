#include "harness/children/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Boost uses vfork only where that is part of the POSIX version that is compiled for. Linux has it always, and with it
// a child starts as quickly as with posix_spawn; fork would copy this process's page table.
#define BOOST_POSIX_HAS_VFORK 1
#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/error.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/posix.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "base/sys.h"

namespace tearless::harness {
namespace {

namespace asio = boost::asio;
namespace process = boost::process;

constexpr size_t kBlock = 1 << 16;  // bytes

[[noreturn]] void fail_to_start(const std::string& program, int error) {
  throw MachineError(fmt::format("cannot start {}: {}", program, std::strerror(error)));
}

// While this process has no handlers that could run: until exec the child shares its memory.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// What the child does before it becomes the program: async-signal-safe calls only.
class Preparation {
 public:
  /// The child writes its pid to `own`.
  Preparation(const ChildRequest& request, pid_t& own) : request_(request), own_(own) {
    ::sigemptyset(&mask_);
    for (const int signal : request.blocked_signals) ::sigaddset(&mask_, signal);
  }

  template <class Executor>
  void operator()(Executor&) const {
    own_ = ::getpid();
    if (request_.own_session) ::setsid();
    put(request_.standard_input, STDIN_FILENO);
    put(request_.standard_output, STDOUT_FILENO);
    put(request_.standard_error, STDERR_FILENO);
    if (request_.closes_others) close_others();
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &by_default, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  // As closefrom(), which the C library has since 2.34; Linux has the system call since 5.9.
  static void close_others() {
    if (::syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) == 0) return;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    for (int descriptor = STDERR_FILENO + 1; static_cast<rlim_t>(descriptor) < limit.rlim_cur; ++descriptor)
      ::close(descriptor);
  }
  static void put(int descriptor, int place) {
    if (descriptor >= 0) ::dup2(descriptor, place);
  }

  const ChildRequest& request_;
  pid_t& own_;
  sigset_t mask_;
};

/// Our variables with the changes of the request. Boost's own environment reads beyond the ends of shorter names.
std::vector<std::string> environment_of(const ChildRequest& request) {
  std::map<std::string, std::string> variables;
  for (char** variable = ::environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const size_t equals = std::min(text.find('='), text.size());
    variables.emplace(text.substr(0, equals), text.substr(equals));
  }
  for (const auto& [name, value] : request.environment) {
    variables.erase(name);
    if (value) variables[name] = "=" + *value;
  }
  std::vector<std::string> all;
  for (const auto& [name, value] : variables) all.push_back(name + value);
  return all;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

class Conversation {
 public:
  Conversation(std::vector<std::string> arguments, const std::function<std::optional<std::string>()>& next,
               const std::function<void(std::string_view)>& on_line)
      : next_(next), on_line_(on_line) {
    std::array<int, 2> in{}, out{};
    // A socket, not a pipe: sending to a program that has died is then an error and raises no SIGPIPE.
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0) fail_to_start(arguments[0], errno);
    to_.assign(asio::local::stream_protocol(), in[0]);
    const Descriptor child_in(in[1]);
    if (::pipe2(out.data(), O_CLOEXEC) != 0) fail_to_start(arguments[0], errno);
    from_.assign(out[0]);
    const Descriptor child_out(out[1]);
    pid_ = spawn(
        {.arguments = std::move(arguments), .standard_input = child_in.get(), .standard_output = child_out.get()});
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  ~Conversation() {
    if (pid_ < 0) return;
    sys::kill(pid_, SIGKILL);
    wait();
  }

  // Sends and receives concurrently: if the answers were read only after the last question, both would block on a full
  // pipe.
  int run() {
    send();
    receive();
    io_.run();
    return wait();
  }

 private:
  void send() {
    while (sending_.size() < kBlock) {
      const std::optional<std::string> line = next_();
      if (!line) break;
      sending_ += *line + "\n";
    }
    if (sending_.empty()) return to_.close();
    asio::async_write(to_, asio::buffer(sending_), [this](boost::system::error_code error, size_t) {
      sending_.clear();
      if (error) return to_.close();  // the program has stopped reading; its exit code will say why
      send();
    });
  }

  void receive() {
    from_.async_read_some(asio::buffer(block_), [this](boost::system::error_code error, size_t size) {
      received_.append(block_.data(), size);
      if (error && !received_.empty()) received_ += '\n';  // a last line without its end
      size_t begin = 0;
      for (size_t end; (end = received_.find('\n', begin)) != std::string::npos; begin = end + 1) {
        on_line_(std::string_view(received_).substr(begin, end - begin));
      }
      received_.erase(0, begin);
      if (!error) return receive();
      to_.close();
    });
  }

  int wait() {
    int status = 0;
    while (sys::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  const std::function<std::optional<std::string>()>& next_;
  const std::function<void(std::string_view)>& on_line_;
  asio::io_context io_;
  asio::local::stream_protocol::socket to_{io_};
  asio::posix::stream_descriptor from_{io_};
  std::array<char, kBlock> block_;
  std::string sending_, received_;
  pid_t pid_ = -1;
};

}  // namespace

pid_t spawn(const ChildRequest& request) {
  const std::string& program = request.arguments.at(0);
  if (const int error = fault::point(fault::kFork, program.c_str()); error != 0) fail_to_start(program, error);
  std::vector<std::string> environment = environment_of(request);
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  const std::vector<std::string> arguments(request.arguments.begin() + 1, request.arguments.end());
  std::error_code error;
  process::child child;
  pid_t pid = -1;
  {
    const NoSignals while_memory_is_shared;
    child = process::child(
        process::exe = program, process::args = arguments,
        process::extend::on_setup = [&](auto& executor) { executor.env = variables.data(); },
        process::extend::on_exec_setup = Preparation(request, pid), process::posix::use_vfork, error);
  }
  child.detach();
  if (error) {  // Boost waits for a child that could not become the program only if that has ended by then
    while (pid > 0 && sys::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    fail_to_start(program, error.value());
  }
  fault::note_spawned(pid);
  return pid;
}

int converse(std::vector<std::string> arguments, const std::function<std::optional<std::string>()>& next,
             const std::function<void(std::string_view)>& on_line) {
  return Conversation(std::move(arguments), next, on_line).run();
}

Printed printed_by(ChildRequest request, size_t max_bytes, std::chrono::steady_clock::time_point deadline) {
  std::array<int, 2> out{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) fail_to_start(request.arguments[0], errno);
  const Descriptor from(out[0]), nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  request.standard_input = request.standard_error = nothing.get();
  request.standard_output = out[1];
  request.own_session = true;
  const pid_t pid = [&] {
    const Descriptor to(out[1]);
    return spawn(request);
  }();
  const auto milliseconds_left = [&] {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  };
  Printed printed;
  std::array<char, kBlock> block{};
  bool is_open = true;
  while (is_open && printed.text.size() <= max_bytes && milliseconds_left() > 0) {
    pollfd ready{.fd = from.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, milliseconds_left()) <= 0) continue;
    const ssize_t size = ::read(from.get(), block.data(), block.size());
    if (size > 0) printed.text.append(block.data(), static_cast<size_t>(size));
    is_open = size > 0 || (size < 0 && errno == EINTR);
  }
  int status = 0;
  pid_t ended = 0;
  while (!is_open && milliseconds_left() > 0 && (ended = sys::waitpid(pid, &status, WNOHANG)) == 0) ::usleep(500);
  printed.is_whole = ended == pid && status == 0;
  if (ended == pid) return printed;
  sys::kill(-pid, SIGKILL);
  while (sys::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return printed;
}

std::string program_in(const std::string& path, const std::string& program) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string file = (std::filesystem::path(path.substr(begin, end - begin)) / program).string();
    struct stat status {};
    if (::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return "";
}

}  // namespace tearless::harness
