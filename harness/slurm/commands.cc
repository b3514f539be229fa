#include "harness/slurm/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/children/child.h"

namespace tearless::harness {
namespace {

constexpr int64_t kMaxOutput = 64 << 20;  // bytes; a program that never stops would fill the memory
constexpr int kBetweenLooks = 20;         // milliseconds
constexpr size_t kMaxColumns = 300;

std::string variable_or_empty(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

// A file in memory: unlike a pipe, it takes all that a child prints while nobody reads.
class CapturedOutput {
 public:
  CapturedOutput() : fd_(::memfd_create("slurm", MFD_CLOEXEC)) {
    if (fd_ < 0) fail_errno("make", "a file in memory");
  }
  ~CapturedOutput() { ::close(fd_); }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  int get() const { return fd_; }
  int64_t size() const {
    struct stat status {};
    return ::fstat(fd_, &status) == 0 ? status.st_size : 0;
  }
  std::string text() const {
    std::string all(static_cast<size_t>(std::min(size(), kMaxOutput)), '\0');
    size_t read = 0;
    while (read < all.size()) {
      const ssize_t got = ::pread(fd_, all.data() + read, all.size() - read, static_cast<off_t>(read));
      if (got <= 0) break;
      read += static_cast<size_t>(got);
    }
    all.resize(read);
    return all;
  }

 private:
  int fd_;
};

// One command, from its start until it has ended. It is killed if it is destroyed before.
class SlurmPrograms::Running {
 public:
  // MachineError if it cannot be started.
  Running(std::vector<std::string> words, double deadline, Then then) : deadline_(deadline), then_(std::move(then)) {
    const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    try {
      pid_ = spawn({.arguments = std::move(words),
                    .environment = {{"CUDA_VISIBLE_DEVICES", std::nullopt}},  // of this machine, which sbatch hands on
                    .standard_input = input,
                    .standard_output = output_.get(),
                    .standard_error = errors_.get(),
                    .own_session = true});
    } catch (...) {
      ::close(input);
      throw;
    }
    ::close(input);
  }
  ~Running() {
    if (pid_ >= 0) end();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // How it ended; nullopt while it runs.
  std::optional<Said> said(double now) {
    int status = 0;
    if (sys::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return said_with(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (now < deadline_ && output_.size() <= kMaxOutput && errors_.size() <= kMaxOutput) return std::nullopt;
    end();
    Said killed = said_with(128 + SIGKILL);
    killed.timed_out = true;
    return killed;
  }
  Then& then() { return then_; }

 private:
  Said said_with(int code) const { return {.code = code, .output = output_.text(), .errors = errors_.text()}; }

  void end() {
    sys::kill(-pid_, SIGKILL);  // a site's sbatch may be a script: its children, too
    int status = 0;
    while (sys::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  double deadline_;
  Then then_;
  CapturedOutput output_, errors_;
  pid_t pid_ = -1;
};

SlurmPrograms::SlurmPrograms(std::function<double()> now) : SlurmPrograms(variable_or_empty("PATH"), std::move(now)) {}

SlurmPrograms::SlurmPrograms(std::string path, std::function<double()> now)
    : path_(std::move(path)), now_(std::move(now)) {}

SlurmPrograms::~SlurmPrograms() = default;

void SlurmPrograms::ask(std::vector<std::string> words, double most_seconds, Then then) {
  const std::string program = program_in(path_, words.at(0));
  if (program.empty()) {
    const std::string sentence = fmt::format(
        "Slurm's {} is not on PATH of this machine: start the service where it is, such as on the cluster's login node",
        words[0]);
    ended_.push_back({{.code = 127, .errors = sentence, .missing = true}, std::move(then)});
    return;
  }
  words[0] = program;
  try {
    running_.push_back(std::make_unique<Running>(std::move(words), now_() + most_seconds, then));
  } catch (const UserError& error) {
    ended_.push_back({{.code = 126, .errors = error.what()}, std::move(then)});
  }
}

void SlurmPrograms::poll() {
  const double now = now_();
  std::erase_if(running_, [&](const std::unique_ptr<Running>& command) {
    std::optional<Said> said = command->said(now);
    if (said) ended_.push_back({std::move(*said), std::move(command->then())});
    return said.has_value();
  });
  for (size_t count = ended_.size(); count > 0; --count) {  // those that a `then` adds come next time
    const Ended next = std::move(ended_.front());
    ended_.erase(ended_.begin());
    next.then(next.said);
  }
}

Said say(SlurmCommands& commands, const std::vector<std::string>& words, double most_seconds) {
  std::optional<Said> said;
  commands.ask(words, most_seconds, [&said](const Said& it) { said = it; });
  for (commands.poll(); !said; commands.poll()) ::poll(nullptr, 0, kBetweenLooks);
  return *said;
}

std::string complaint_of(const Said& said) {
  constexpr std::array<std::string_view, 3> kPrefixes = {
      "error: ", "Batch job submission failed: ", "allocation failure: "};
  std::vector<std::string> phrases;
  for (std::string_view line : split_lines(said.errors.empty() ? said.output : said.errors)) {
    for (const std::string_view prefix : kPrefixes) {
      if (const size_t at = line.find(prefix); at != line.npos) line.remove_prefix(at + prefix.size());
    }
    if (line.find_first_not_of(" \t\r") != line.npos) phrases.push_back(printable(line));
  }
  if (said.timed_out) return "it did not answer in time";
  if (phrases.empty()) return fmt::format("it ended with exit code {} and without a word", said.code);
  return fitted(some_of(phrases, 3, "; "), kMaxColumns);
}

}  // namespace tearless::harness
