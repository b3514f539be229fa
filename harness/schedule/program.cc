#include "harness/schedule/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/sys.h"
#include "harness/schedule/spawn.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Talk {
  std::string verb;                                  // "check" or "probe"
  std::function<std::optional<std::string>()> next;  // returns the next line to send, nullopt at the end
  std::function<void(std::string_view)> on_line;     // receives each line of the answer
};

// Runs the program to its end, sending and receiving concurrently. If answers were read only after the last question,
// the program would block on a full pipe.
void talk_to(const fs::path& program, const Talk& talk) {
  std::array<int, 2> in{}, out{};
  // A socket, not a pipe: with MSG_NOSIGNAL, sending to a program that has died is an error and raises no SIGPIPE.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
    fail("cannot open a connection to {}: {}", program.string(), std::strerror(errno));
  }
  Descriptor to(in[0]), child_in(in[1]), from(out[0]), child_out(out[1]);
  const pid_t pid = spawn({.arguments = {program.string(), talk.verb, "--json"},
                           .environment = {},
                           .standard_input = child_in.get(),
                           .standard_output = child_out.get()});
  child_in.close();
  child_out.close();

  std::string to_send, received;
  while (true) {
    while (to.is_open() && to_send.size() < 65536) {
      const std::optional<std::string> line = talk.next();
      if (!line) break;
      to_send += *line + "\n";
    }
    if (to_send.empty()) to.close();

    std::array<pollfd, 2> events = {pollfd{from.get(), POLLIN, 0}, pollfd{to.get(), POLLOUT, 0}};
    if (::poll(events.data(), to.is_open() ? 2 : 1, -1) < 0) continue;  // a signal
    if (to.is_open() && events[1].revents != 0) {
      const ssize_t sent = ::send(to.get(), to_send.data(), to_send.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        to_send.erase(0, static_cast<size_t>(sent));
      } else if (errno != EAGAIN && errno != EINTR) {
        to.close();  // the program has stopped reading; its exit code will say why
        to_send.clear();
      }
    }
    if (events[0].revents == 0) continue;
    char buffer[1 << 16];
    const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    received.append(buffer, static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = received.find('\n', begin)) != std::string::npos; begin = end + 1) {
      talk.on_line(std::string_view(received).substr(begin, end - begin));
    }
    received.erase(0, begin);
  }

  int status = 0;
  while (sys::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) fail("`{} {}` was killed by signal {}", program.string(), talk.verb, WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) {
    fail("`{} {}` failed with exit code {}; see its message above", program.string(), talk.verb, WEXITSTATUS(status));
  }
}

std::optional<int64_t> number_or_pending(const json& record, const char* key) {
  const json value = record.value(key, json());
  if (!value.is_number()) return std::nullopt;
  return value.get<int64_t>();
}

CheckAnswer answer_from(const json& line) {
  CheckAnswer answer;
  answer.error = line.value("error", "");
  answer.key = line.value("key", "");
  if (!answer.error.empty()) return answer;
  answer.id = line.at("id");
  answer.canonical = line.at("canonical");
  answer.local = line.value("local", "");
  answer.waiting = line.value("state", "ready") == "waiting_data";
  answer.waiting_for = line.value("waiting_for", "");
  answer.parameters = number_or_pending(line, "parameters");
  answer.memory_bytes = number_or_pending(line, "memory_bytes");
  answer.updates = line.value("updates", int64_t{0});
  answer.device = line.value("device", "cpu");
  answer.threads = line.value("threads", 1);
  return answer;
}

}  // namespace

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

std::vector<CheckAnswer> Program::check(const std::vector<CheckQuestion>& questions) const {
  std::vector<CheckAnswer> answers;
  answers.reserve(questions.size());
  auto question = questions.begin();
  check(
      [&]() -> std::optional<CheckQuestion> {
        if (question == questions.end()) return std::nullopt;
        return *question++;
      },
      [&](CheckAnswer answer) { answers.push_back(std::move(answer)); });
  return answers;
}

void Program::check(const std::function<std::optional<CheckQuestion>()>& next,
                    const std::function<void(CheckAnswer)>& answered) const {
  int64_t asked = 0, answers = 0;
  const auto say = [&]() -> std::optional<std::string> {
    const std::optional<CheckQuestion> question = next();
    if (!question) return std::nullopt;
    ++asked;
    return json{{"settings", question->settings},
                {"folder", question->folder},
                {"folders", question->folders},
                {"smoke", question->smoke}}
        .dump();
  };
  talk_to(path_, {.verb = "check", .next = say, .on_line = [&](std::string_view line) {
                    ++answers;
                    try {
                      answered(answer_from(json::parse(line)));
                    } catch (const json::exception& error) {
                      fail("`{} check`: answer {} is not as docs/run_directory.md describes: {}", path_.string(),
                           answers, error.what());
                    }
                  }});
  if (answers != asked) fail("`{} check` answered {} of {} questions", path_.string(), answers, asked);
}

Probe Program::probe() const {
  std::string text;
  talk_to(path_, {.verb = "probe",
                  .next = []() -> std::optional<std::string> { return std::nullopt; },
                  .on_line = [&](std::string_view line) { text += line; }});
  try {
    const json answer = json::parse(text);
    Probe probe{.program = answer.at("program"),
                .version = answer.at("version"),
                .numerics = answer.at("numerics"),
                .devices = {}};
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
