#include "base/run_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless {
namespace fs = std::filesystem;
using nlohmann::json;

int64_t RunDirectory::newest_attempt() const {
  int64_t newest = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempts(), error)) {
    const std::string name = entry.path().filename().string();
    int64_t number = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc() && end == name.data() + name.size()) newest = std::max(newest, number);
  }
  return newest;
}

int64_t RunDirectory::make_attempt() const {
  make_folders(attempts());
  for (int64_t number = newest_attempt() + 1;; ++number) {
    if (::mkdir(attempt(number).c_str(), 0777) == 0) {
      sync_folder(attempts());
      return number;
    }
    if (errno != EEXIST) fail("cannot make {}: {}", attempt(number).string(), std::strerror(errno));
  }
}

std::string run_id(std::string_view canonical_text) { return sha256(canonical_text).substr(0, 16); }

std::optional<Done> read_done(const RunDirectory& run) {
  if (!fs::exists(run.done())) return std::nullopt;
  try {
    const json record = json::parse(read_file(run.done()));
    return Done{record.at("outcome"), record.at("step"), record.at("reason"), record.at("files")};
  } catch (const json::exception&) {
    fail("{} is damaged; delete the run's folder to train it again", run.done().string());
  }
}

void write_done(const RunDirectory& run, std::string outcome, int64_t step, std::string reason,
                const std::vector<std::string>& names) {
  json files = json::object();
  for (const std::string& name : names) files[name] = sha256_of_file(run.root() / name);
  const json record = {{"outcome", outcome}, {"step", step}, {"reason", reason}, {"files", files}};
  write_atomically(run.done(), record.dump(2) + "\n");
}

std::string changed_result_file(const RunDirectory& run, const Done& done) {
  for (const auto& [name, checksum] : done.files) {
    const fs::path path = run.root() / name;
    if (!fs::exists(path) || sha256_of_file(path) != checksum) return name;
  }
  return "";
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::optional<int64_t> process_start_ticks(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // Field 22, counted after the command, which stands in brackets and may itself hold spaces and brackets.
  size_t position = line.rfind(')');
  for (int field = 2; field < 22 && position != std::string::npos; ++field) position = line.find(' ', position + 1);
  if (position == std::string::npos) return std::nullopt;
  return std::stoll(line.substr(position + 1));
}

}  // namespace tearless
