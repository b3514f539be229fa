#include "harness/plan/program.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/run_directory.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/children/child.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::string_view kOwnEngine = "tearless-engine";
constexpr size_t kMaxShown = 200;  // columns of a line that is no answer

// "banner.py check": how messages call the program's command.
std::string name_of(const fs::path& program, const std::string& verb) {
  return fmt::format("{} {}", printable(program.filename().string()), verb);
}

/// Runs `program verb` as converse() does. UserError if the program fails.
void ask(const fs::path& program, const std::string& verb, const std::function<std::optional<std::string>()>& next,
         const std::function<void(std::string_view)>& on_line) {
  const int status = converse({program.string(), verb, "--json"}, next, on_line);
  const std::string name = fmt::format("`{} {}`", program.string(), verb);
  if (WIFSIGNALED(status)) fail("{} was killed by signal {}", name, WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) fail("{} failed with exit code {}; see its message above", name, WEXITSTATUS(status));
}

/// The object that a line is. UserError, with the line, if it is none.
ordered_json answer_in(std::string_view line, const std::string& name) {
  constexpr std::string_view kBlank = " \t\r";
  ordered_json answer = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object()) return answer;
  const size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) fail("{} printed an empty line; only answers belong on standard output", name);
  const std::string shown = fitted(printable(line.substr(begin)), kMaxShown);
  if (line[begin] == '{') fail("{} printed \"{}\"; an answer is one whole line of JSON", name, shown);
  fail("{} printed \"{}\"; only answers belong on standard output", name, shown);
}

// Null counts as absent, as Python prints None.
std::string text_in(const ordered_json& answer, const char* key, const std::string& absent = "") {
  const auto member = answer.find(key);
  if (member == answer.end() || member->is_null()) return absent;
  if (!member->is_string()) throw std::invalid_argument(fmt::format("\"{}\" is not a text", key));
  return member->get<std::string>();
}

std::string required_text(const ordered_json& answer, const char* key) {
  if (!answer.contains(key)) throw std::invalid_argument(fmt::format("\"{}\" is missing", key));
  return text_in(answer, key);
}

// Nullopt if it is absent.
std::optional<std::vector<std::string>> texts_in(const ordered_json& answer, const char* key) {
  const auto member = answer.find(key);
  if (member == answer.end() || member->is_null()) return std::nullopt;
  const auto is_text = [](const ordered_json& item) { return item.is_string(); };
  if (!member->is_array() || !std::ranges::all_of(*member, is_text)) {
    throw std::invalid_argument(fmt::format("\"{}\" is not a list of names", key));
  }
  return member->get<std::vector<std::string>>();
}

std::string first_bytes(const fs::path& file) {
  std::string bytes(4, '\0');
  std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// The interpreter that the first line of a script names, or "".
std::string interpreter_of(const fs::path& program) {
  std::string line;
  std::getline(std::ifstream(program), line);
  if (!line.starts_with("#!")) return "";
  const size_t begin = line.find_first_not_of(" \t", 2);
  return begin == std::string::npos ? "" : line.substr(begin, line.find_first_of(" \t", begin) - begin);
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
CheckAnswer answer_from(const ordered_json& json, const CheckAnswer* like) {
  CheckAnswer answer{.error = text_in(json, "error"), .key = text_in(json, "key"), .run = {}};
  if (!answer.error.empty()) return answer;
  answer.run = run_from(json, like ? &like->run : nullptr);
  for (const auto& [key, known] :
       {std::pair("scores", &CheckAnswer::scores), std::pair("metrics", &CheckAnswer::metrics),
        std::pair("windows", &CheckAnswer::windows)}) {
    const auto names = texts_in(json, key);
    if (!names) continue;
    const bool is_same = like && like->*known && *(like->*known) == *names;
    answer.*known = is_same ? like->*known : std::make_shared<const std::vector<std::string>>(*names);
  }
  if (const auto unused = json.find("unused"); unused != json.end() && !unused->is_null()) {
    answer.run.unused = unused->get<std::map<std::string, std::string>>();
  }
  const bool is_ready = text_in(json, "state", "ready") != "waiting_data";
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

std::string how_to_get_engine(const std::string& glibc) {
  constexpr int kNeeded = 34;  // glibc 2.34, as tools/wheel_engine.sh checks
  const bool is_older = std::atoi(glibc.substr(glibc.find('.') + 1).c_str()) < kNeeded;
  if (is_older)
    return fmt::format(
        "tearless-engine needs glibc 2.{} or later, and this machine has {}: train on a newer one, or build it here "
        "(make)",
        kNeeded, glibc);
  return "install it (pip install tearless-engine), build it (make), or name one with --engine or $TEARLESS_ENGINE";
}

std::string line_of(const RunSpec& spec) {
  json line = {{"folder", spec.folder}, {"folders", spec.folders}, {"smoke", spec.smoke}, {"settings", spec.settings}};
  if (!spec.derived.empty()) line["derived"] = spec.derived;
  return line.dump();
}

Program::Program(const fs::path& path) : path_(fs::absolute(path)) {
  const std::string file = path_.string();
  if (!fs::exists(path_)) {
    const bool is_command = file.find(' ') != std::string::npos;
    fail("there is no training program {}; {}", file,
         is_command                       ? "it must be the path of one file, not a command"
         : path_.filename() == kOwnEngine ? how_to_get_engine(::gnu_get_libc_version())
                                          : "name another with --engine or $TEARLESS_ENGINE");
  }
  if (fs::is_directory(path_)) fail("the training program {} is a folder; name the program in it", file);
  if (::access(path_.c_str(), X_OK) != 0) {
    fail("the training program {} is not executable; chmod +x {}", file, shell_word(file));
  }
  if (const std::string begin = first_bytes(path_); !begin.starts_with("#!") && !begin.starts_with("\x7f"
                                                                                                   "ELF")) {
    fail(
        "the training program {} is neither a binary nor a script whose first line names its interpreter, such as "
        "#!/usr/bin/env python3",
        file);
  }
  if (const std::string interpreter = interpreter_of(path_); !interpreter.empty() && !fs::exists(interpreter)) {
    fail("the first line of {} names the interpreter {}, which does not exist", file, printable(interpreter));
  }
}

Program Program::find(const fs::path& asked, const std::optional<fs::path>& of_grid) {
  if (!asked.empty()) return Program(asked);
  if (of_grid) return Program(*of_grid);
  if (const char* named = std::getenv("TEARLESS_ENGINE"); named && *named) return Program(named);
  return Program(fs::read_symlink("/proc/self/exe").parent_path() / "tearless-engine");
}

std::vector<CheckAnswer> Program::check(size_t count, const std::function<RunSpec(size_t)>& spec) const {
  const std::string name = name_of(path_, "check");
  std::vector<CheckAnswer> answers;
  answers.reserve(count);
  const auto next = [&, asked = size_t{0}]() mutable -> std::optional<std::string> {
    if (asked == count) return std::nullopt;
    return line_of(spec(asked++));
  };
  const auto on_line = [&](std::string_view line) {
    const ordered_json answer = answer_in(line, name);
    if (answers.size() == count) {
      fail("{} printed more answers than the {} that it was asked for; each question gets one, in their order", name,
           count);
    }
    try {
      answers.push_back(answer_from(answer, answers.empty() ? nullptr : &answers.back()));
    } catch (const std::exception& error) {
      fail("`{} check`: answer {} is not as docs/run_directory.md describes: {}", path_.string(), answers.size() + 1,
           error.what());
    }
  };
  ask(path_, "check", next, on_line);
  if (answers.size() < count) fail("{} answered {} of {} questions", name, answers.size(), count);
  return answers;
}

const Probe& Program::probe() const {
  if (probe_) return *probe_;
  const std::string name = name_of(path_, "probe");
  std::optional<ordered_json> answer;
  const auto ask_nothing = [] { return std::optional<std::string>(); };
  ask(path_, "probe", ask_nothing, [&](std::string_view line) {
    ordered_json object = answer_in(line, name);
    if (answer) fail("{} printed a second answer: \"{}\"", name, fitted(printable(line), kMaxShown));
    answer = std::move(object);
  });
  if (!answer) fail("{} printed no answer", name);
  try {
    Probe probe{.program = required_text(*answer, "program"),
                .version = required_text(*answer, "version"),
                .runtime = text_in(*answer, "runtime"),
                .numerics = 0,
                .identity = {},
                .files = {},
                .home = text_in(*answer, "home")};
    const auto numerics = answer->find("numerics");
    if (numerics == answer->end()) throw std::invalid_argument("\"numerics\" is missing");
    if (!numerics->is_number_integer()) throw std::invalid_argument("\"numerics\" is not a whole number");
    probe.numerics = *numerics;
    if (probe.program != kOwnEngine) {
      probe.identity = text_in(*answer, "identity", fmt::format("{} {}", probe.program, probe.version));
      if (probe.identity.empty()) {
        throw std::invalid_argument("\"identity\" is empty; leave it out, or say what the program is");
      }
    }
    probe.files = texts_in(*answer, "files");
    if (!probe.home.empty() && !fs::path(probe.home).is_absolute())
      throw std::invalid_argument("\"home\" is not an absolute path");
    return probe_.emplace(std::move(probe));
  } catch (const std::invalid_argument& error) {
    fail("`{} probe`: the answer is not as docs/run_directory.md describes: {}", path_.string(), error.what());
  }
}

json Probe::stamp() const {
  json stamp = {{"program", program}, {"version", version}, {"runtime", runtime}, {"numerics", numerics}};
  if (!identity.empty()) stamp["identity"] = identity;
  return stamp;
}

ProgramNow Program::now() const {
  return {.numerics = probe().numerics, .file = probe().identity.empty() ? "" : file_hash(path_)};
}

}  // namespace tearless::harness
