#include "harness/plan/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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
#include "base/run_directory.h"
#include "base/spawn.h"
#include "base/sys.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view kOwnEngine = "tearless-engine";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

/// The destructor kills it if wait() was not called.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    sys::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    while (sys::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

/// Runs `program verb`, sends it the lines that `next` returns, and calls `on_line` with each line of its answer.
/// UserError if the program fails; it is killed if `next` or `on_line` throws.
void converse(const fs::path& program, const std::string& verb, const std::function<std::optional<std::string>()>& next,
              const std::function<void(std::string_view)>& on_line) {
  std::array<int, 2> in{}, out{};
  const auto refuse_if = [&](bool failed) {
    if (failed) fail("cannot open a connection to {}: {}", program.string(), std::strerror(errno));
  };
  // A socket, not a pipe: with MSG_NOSIGNAL, sending to a program that has died is an error and raises no SIGPIPE.
  refuse_if(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0);
  Descriptor to(in[0]), child_in(in[1]);
  refuse_if(::pipe2(out.data(), O_CLOEXEC) != 0);
  Descriptor from(out[0]), child_out(out[1]);
  Child child(spawn({.arguments = {program.string(), verb, "--json"},
                     .environment = {},
                     .standard_input = child_in.get(),
                     .standard_output = child_out.get()}));
  child_in.close();
  child_out.close();

  // Sends and receives concurrently: if the answers were read only after the last question, both would block on a full
  // pipe.
  std::string to_send, received;
  std::array<char, 1 << 16> buffer;
  while (true) {
    while (to.is_open() && to_send.size() < buffer.size()) {
      const std::optional<std::string> line = next();
      if (!line) break;
      to_send += *line + "\n";
    }
    if (to_send.empty()) to.close();
    std::array<pollfd, 2> events{pollfd{from.get(), POLLIN, 0}, pollfd{to.get(), POLLOUT, 0}};
    if (::poll(events.data(), events.size(), -1) < 0) continue;  // a signal
    if (events[1].revents != 0) {
      const ssize_t sent = ::send(to.get(), to_send.data(), to_send.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        to_send.erase(0, static_cast<size_t>(sent));
      } else if (errno != EAGAIN && errno != EINTR) {
        to.close();  // the program has stopped reading; its exit code will say why
        to_send.clear();
      }
    }
    if (events[0].revents == 0) continue;
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    received.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = received.find('\n', begin)) != std::string::npos; begin = end + 1) {
      on_line(std::string_view(received).substr(begin, end - begin));
    }
    received.erase(0, begin);
  }
  to.close();
  const int status = child.wait();
  const std::string name = fmt::format("`{} {}`", program.string(), verb);
  if (WIFSIGNALED(status)) fail("{} was killed by signal {}", name, WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) fail("{} failed with exit code {}; see its message above", name, WEXITSTATUS(status));
}

// While its data are missing the id is provisional, but it names a folder all the same.
void require_id(const Run& run, bool is_ready) {
  if (run.id.size() != 16 || run.id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    fail("\"id\" is \"{}\", not 16 hex digits", run.id);
  }
  if (const std::string id = run_id(run.settings); is_ready && run.id != id) {
    fail("\"id\" is {}, but the SHA-256 of \"canonical\" begins with {}: the program is at fault", run.id, id);
  }
}

// `like`: an answer that was read before; what is equal is shared with it.
CheckAnswer answer_from(const std::string_view line, const CheckAnswer* like) {
  const auto json = nlohmann::ordered_json::parse(line);
  CheckAnswer answer{.error = json.value("error", ""), .key = json.value("key", ""), .run = {}, .scores = {}};
  if (!answer.error.empty()) return answer;
  answer.run = run_from(json, like ? &like->run : nullptr);
  if (const auto scores = json.find("scores"); scores != json.end()) {
    auto names = scores->get<std::vector<std::string>>();
    const bool is_same = like && like->scores && *like->scores == names;
    answer.scores = is_same ? like->scores : std::make_shared<const std::vector<std::string>>(std::move(names));
  }
  const bool is_ready = json.value("state", "ready") != "waiting_data";
  require_id(answer.run, is_ready);
  Needs& needs = answer.run.needs;
  if (needs.resource_class.empty() && answer.run.parameters && needs.memory_bytes) {
    // Of a program that does not say which runs are alike, those of the same size are taken to be.
    needs.resource_class =
        fmt::format("{} {} {} {}", needs.device, needs.threads, *answer.run.parameters, *needs.memory_bytes);
  }
  if (is_ready) {
    answer.run.waiting_for.clear();
    return answer;
  }
  answer.run.settings.clear();
  if (answer.run.waiting_for.empty()) answer.run.waiting_for = "its data are missing";
  return answer;
}

}  // namespace

std::string line_of(const RunSpec& spec) {
  json line = {{"folder", spec.folder}, {"folders", spec.folders}, {"smoke", spec.smoke}, {"settings", spec.settings}};
  if (!spec.derived.empty()) line["derived"] = spec.derived;
  return line.dump();
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

std::vector<CheckAnswer> Program::check(size_t count, const std::function<RunSpec(size_t)>& spec) const {
  const std::string name = fmt::format("`{} check`", path_.string());
  std::vector<CheckAnswer> answers;
  answers.reserve(count);
  const auto next = [&, asked = size_t{0}]() mutable -> std::optional<std::string> {
    if (asked == count) return std::nullopt;
    return line_of(spec(asked++));
  };
  const auto on_line = [&](std::string_view line) {
    if (answers.size() == count) return;
    try {
      answers.push_back(answer_from(line, answers.empty() ? nullptr : &answers.back()));
    } catch (const std::exception& error) {
      fail("{}: answer {} is not as docs/run_directory.md describes: {}", name, answers.size() + 1, error.what());
    }
  };
  converse(path_, "check", next, on_line);
  if (answers.size() < count) fail("{} answered {} of {} questions", name, answers.size(), count);
  return answers;
}

const Probe& Program::probe() const {
  if (probe_) return *probe_;
  std::string text;
  const auto ask_nothing = [] { return std::optional<std::string>(); };
  converse(path_, "probe", ask_nothing, [&](std::string_view line) { text += line; });
  try {
    const json answer = json::parse(text);
    Probe probe{.program = answer.at("program"),
                .version = answer.at("version"),
                .runtime = answer.value("runtime", ""),
                .numerics = answer.at("numerics"),
                .identity = {},
                .devices = {},
                .files = {}};
    if (probe.program != kOwnEngine) {
      probe.identity = answer.value("identity", fmt::format("{} {}", probe.program, probe.version));
      if (probe.identity.empty()) fail("`{} probe`: \"identity\" is empty; leave it out, or say what the program is", path_.string());
    }
    if (answer.contains("files")) probe.files = answer["files"].get<std::vector<std::string>>();
    for (const json& device : answer.value("devices", json::array())) {
      probe.devices.push_back({device.at("kind"), device.value("uuid", ""), device.value("name", ""),
                               device.value("memory_bytes", int64_t{0})});
    }
    return probe_.emplace(std::move(probe));
  } catch (const json::exception& error) {
    fail("`{} probe`: the answer is not as docs/run_directory.md describes: {}", path_.string(), error.what());
  }
}

ProgramNow Program::now() const {
  return {.numerics = probe().numerics, .file = probe().identity.empty() ? "" : file_hash(path_)};
}

}  // namespace tearless::harness
