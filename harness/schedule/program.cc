#include "harness/schedule/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/sys.h"
#include "harness/devices/machine.h"
#include "harness/schedule/spawn.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Exchange {
  std::string verb;                                  // "check" or "probe"
  std::string name;                                  // of the process, for error messages
  std::function<std::optional<std::string>()> next;  // returns the next line to send, nullopt at the end
  std::function<void(std::string_view)> on_line;     // receives each line of the answer
  std::function<void()> on_end = [] {};              // called when the process has ended without an error
};

/// A process of the program that an Exchange is made with. The destructor kills it if it is still running.
class Process {
 public:
  Process(const fs::path& program, Exchange exchange) : exchange_(std::move(exchange)) {
    std::array<int, 2> in{}, out{};
    // A socket, not a pipe: with MSG_NOSIGNAL, sending to a program that has died is an error and raises no SIGPIPE.
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0) fail_to_connect(program);
    to_ = Descriptor(in[0]);
    const Descriptor child_in(in[1]);
    if (::pipe2(out.data(), O_CLOEXEC) != 0) fail_to_connect(program);
    from_ = Descriptor(out[0]);
    const Descriptor child_out(out[1]);
    pid_ = spawn({.arguments = {program.string(), exchange_.verb, "--json"},
                  .environment = {},
                  .standard_input = child_in.get(),
                  .standard_output = child_out.get()});
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ < 0) return;
    sys::kill(pid_, SIGKILL);
    wait();
  }

  bool ended() const { return pid_ < 0; }

  /// What to poll for; a negative descriptor is ignored.
  std::array<pollfd, 2> events() {
    while (to_.is_open() && to_send_.size() < 65536) {
      const std::optional<std::string> line = exchange_.next();
      if (!line) break;
      to_send_ += *line + "\n";
    }
    if (to_send_.empty()) to_.close();
    return {pollfd{from_.get(), POLLIN, 0}, pollfd{to_.get(), POLLOUT, 0}};
  }

  /// Sends and receives what the polled events allow. Throws UserError if the process has failed.
  void handle(std::span<const pollfd> events) {
    if (to_.is_open() && events[1].revents != 0) send();
    if (!ended() && events[0].revents != 0) receive();
  }

 private:
  [[noreturn]] static void fail_to_connect(const fs::path& program) {
    fail("cannot open a connection to {}: {}", program.string(), std::strerror(errno));
  }

  void send() {
    const ssize_t sent = ::send(to_.get(), to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      to_send_.erase(0, static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      to_.close();  // the program has stopped reading; its exit code will say why
      to_send_.clear();
    }
  }

  void receive() {
    std::array<char, 1 << 16> buffer;
    const ssize_t got = ::read(from_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) return end();
    received_.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = received_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      exchange_.on_line(std::string_view(received_).substr(begin, end - begin));
    }
    received_.erase(0, begin);
  }

  int wait() {
    to_.close();
    from_.close();
    int status = 0;
    while (sys::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  void end() {
    const int status = wait();
    if (WIFSIGNALED(status)) fail("{} was killed by signal {}", exchange_.name, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) {
      fail("{} failed with exit code {}; see its message above", exchange_.name, WEXITSTATUS(status));
    }
    exchange_.on_end();
  }

  Exchange exchange_;
  Descriptor to_, from_;
  pid_t pid_ = -1;
  std::string to_send_, received_;
};

/// Runs one process of the program for each exchange, to their ends, sending and receiving concurrently. If answers
/// were read only after the last question, a process would block on a full pipe.
void run_exchanges(const fs::path& program, std::vector<Exchange> exchanges) {
  std::vector<std::unique_ptr<Process>> processes;
  for (Exchange& exchange : exchanges) processes.push_back(std::make_unique<Process>(program, std::move(exchange)));
  std::vector<pollfd> events;
  while (true) {
    events.clear();
    std::erase_if(processes, [](const auto& process) { return process->ended(); });
    if (processes.empty()) return;
    for (const auto& process : processes) {
      const auto wanted = process->events();
      events.insert(events.end(), wanted.begin(), wanted.end());
    }
    if (::poll(events.data(), events.size(), -1) < 0) continue;  // a signal
    for (size_t i = 0; i < processes.size(); ++i) processes[i]->handle(std::span(events).subspan(2 * i, 2));
  }
}

CheckAnswer answer_from(const std::string_view line, const Run* like) {
  const auto json = nlohmann::ordered_json::parse(line);
  CheckAnswer answer{.error = json.value("error", ""), .key = json.value("key", ""), .run = {}};
  if (!answer.error.empty()) return answer;
  answer.run = run_from(json, like);
  Needs& needs = answer.run.needs;
  if (needs.resource_class.empty() && answer.run.parameters && needs.memory_bytes) {
    // Of a program that does not say which runs are alike, those of the same size are taken to be.
    needs.resource_class =
        fmt::format("{} {} {} {}", needs.device, needs.threads, *answer.run.parameters, *needs.memory_bytes);
  }
  if (json.value("state", "ready") != "waiting_data") {
    answer.run.waiting_for.clear();
    return answer;
  }
  answer.run.settings.clear();
  if (answer.run.waiting_for.empty()) answer.run.waiting_for = "its data are missing";
  return answer;
}

}  // namespace

std::string line_of(const RunSpec& spec) {
  return json{{"folder", spec.folder}, {"folders", spec.folders}, {"smoke", spec.smoke}, {"settings", spec.settings}}
      .dump();
}

Program::Program(const fs::path& path) : path_(fs::absolute(path)) {
  if (::access(path_.c_str(), X_OK) != 0) {
    fail("there is no training program {}; build it (make), or name one with --engine or $TEARLESS_ENGINE",
         path_.string());
  }
}

Program Program::find(const fs::path& asked, const std::optional<fs::path>& of_grid) {
  if (!asked.empty()) return Program(asked);
  if (const char* named = std::getenv("TEARLESS_ENGINE"); named && *named) return Program(named);
  if (of_grid) return Program(*of_grid);
  return Program(fs::read_symlink("/proc/self/exe").parent_path() / "tearless-engine");
}

size_t Program::processes_for(size_t questions, size_t cores) {
  constexpr size_t kQuestionsEach = 10'000;  // tearless-engine starts in the time that it takes to check about these
  return std::clamp<size_t>(questions / kQuestionsEach, 1, cores);
}

std::vector<CheckAnswer> Program::check(size_t count, const std::function<RunSpec(size_t)>& spec,
                                        size_t processes) const {
  if (processes == 0) processes = processes_for(count, cores_of_process().size());
  std::vector<CheckAnswer> answers(count);
  std::vector<Exchange> exchanges;
  for (size_t i = 0; i < processes; ++i) {
    const size_t begin = i * count / processes, end = (i + 1) * count / processes;
    std::string name = fmt::format("`{} check`", path_.string());
    if (processes > 1) name += fmt::format(" (process {} of {})", i + 1, processes);
    const auto answered = std::make_shared<size_t>(0);
    exchanges.push_back(
        {.verb = "check",
         .name = name,
         .next = [&spec, asked = begin, end]() mutable -> std::optional<std::string> {
           if (asked == end) return std::nullopt;
           return line_of(spec(asked++));
         },
         .on_line =
             [&answers, name, begin, end, answered](std::string_view line) {
               const size_t number = begin + (*answered)++;
               if (number >= end) return;
               try {
                 answers[number] = answer_from(line, number > begin ? &answers[number - 1].run : nullptr);
               } catch (const std::exception& error) {
                 fail("{}: answer {} is not as docs/run_directory.md describes: {}", name, *answered, error.what());
               }
             },
         .on_end =
             [name, questions = end - begin, answered] {
               if (*answered == questions) return;
               fail("{} answered {} of {} questions", name, *answered, questions);
             }});
  }
  run_exchanges(path_, std::move(exchanges));
  return answers;
}

Probe Program::probe() const {
  std::string text;
  run_exchanges(path_, {{.verb = "probe",
                         .name = fmt::format("`{} probe`", path_.string()),
                         .next = []() -> std::optional<std::string> { return std::nullopt; },
                         .on_line = [&](std::string_view line) { text += line; }}});
  try {
    const json answer = json::parse(text);
    Probe probe{.program = answer.at("program"),
                .version = answer.at("version"),
                .runtime = answer.value("runtime", ""),
                .numerics = answer.at("numerics"),
                .devices = {},
                .files = {}};
    if (answer.contains("files")) probe.files = answer["files"].get<std::vector<std::string>>();
    for (const json& device : answer.value("devices", json::array())) {
      probe.devices.push_back({device.at("kind"), device.value("uuid", ""), device.value("name", ""),
                               device.value("memory_bytes", int64_t{0})});
    }
    return probe;
  } catch (const json::exception& error) {
    fail("`{} probe`: the answer is not as docs/run_directory.md describes: {}", path_.string(), error.what());
  }
}

}  // namespace tearless::harness
