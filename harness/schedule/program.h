// The training program, as the harness sees it: a path that answers `check` and `probe` in JSON
// (docs/run_directory.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

/// One configuration to be judged.
struct CheckQuestion {
  std::map<std::string, nlohmann::json> settings;  // flat dotted keys
  std::string folder;                              // relative paths start here …
  std::map<std::string, std::string> folders;      // … unless their key has a folder of its own
  bool smoke = false;                              // the same run cut down to a few updates
};

struct CheckAnswer {
  std::string error;  // one sentence; "" where the settings are accepted. Then nothing below but `key` is set
  std::string key;    // the setting that `error` is about, or ""

  std::string id;                       // 16 hex digits
  std::string canonical;                // text of run.toml
  std::string local;                    // text of local.toml
  bool waiting = false;                 // a corpus is missing; the id is provisional
  std::string waiting_for;              // which file, and how to get it
  std::optional<int64_t> parameters;    // unset until the data are prepared
  std::optional<int64_t> memory_bytes;  // likewise
  int64_t updates = 0;                  // the most that the run can make
  std::string device;                   // "cpu" or "cuda"
  int threads = 1;
};

struct ProgramDevice {
  std::string kind, uuid, name;
  int64_t memory_bytes = 0;
};

struct Probe {
  std::string program, version;
  int64_t numerics = 0;  // results of different numbers are not comparable
  std::vector<ProgramDevice> devices;
};

class Program {
 public:
  /// UserError where `path` cannot be executed.
  explicit Program(std::filesystem::path path);

  /// `asked` (--engine) if not empty, else $TEARLESS_ENGINE, else `of_grid`, else tearless-engine beside this
  /// executable.
  static Program find(const std::filesystem::path& asked, const std::optional<std::filesystem::path>& of_grid);

  const std::filesystem::path& path() const { return path_; }

  /// One process for all questions, answered in order; both directions stream, so any number fits. UserError where the
  /// program fails, answers nonsense, or leaves questions unanswered.
  std::vector<CheckAnswer> check(const std::vector<CheckQuestion>& questions) const;

  /// The same without holding all questions at once: `next` returns nothing at the end, `answered` is called in order.
  void check(const std::function<std::optional<CheckQuestion>()>& next,
             const std::function<void(CheckAnswer)>& answered) const;

  Probe probe() const;

 private:
  std::filesystem::path path_;
};

}  // namespace tearless::harness
