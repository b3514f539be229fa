#include "engine/task/run_options.h"

#include "base/error.h"
#include "base/files.h"
#include "base/run_directory.h"
#include "base/toml.h"

namespace tearless::engine {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kSmokeUpdates = 20;

/// Canonical text omits settings at their neutral value. Adds those values, because the default may be another.
void add_neutral_values(WrittenSettings& canonical) {
  RunOptions any;
  for (const DescribedField& f : list_settings(description_of(any))) {
    if (f.field.neutral) canonical.values.emplace(f.key, *f.field.neutral);
  }
}

}  // namespace

void describe(SettingsVisitor& v, RunOptions& o) {
  v.table("data", o.data);
  v.table("text", o.text);
  v.table("model", o.model);
  v.table("train", o.train);
  v.table("decode", o.decode);
  v.table("run", o.run);
}

Describe description_of(RunOptions& options) {
  return [&options](SettingsVisitor& v) { describe(v, options); };
}

RunOptions read_run_options(const WrittenSettings& written, const fs::path& folder,
                            const std::map<std::string, std::string>& folders) {
  RunOptions options;
  read_settings(written, description_of(options));
  try {
    check_consistent(options.model);
    check_consistent(options.run);
  } catch (const UserError& error) {
    fail("{}: {}", written.name, error.what());
  }
  const auto resolve = [&](const char* key, std::string& path) {
    if (path.empty()) return;
    const auto own = folders.find(key);
    path = fs::absolute((own == folders.end() ? folder : fs::path(own->second)) / path).lexically_normal().string();
  };
  resolve("data.train", options.data.train);
  resolve("data.dev", options.data.dev);
  resolve("data.test", options.data.test);
  return options;
}

RunOptions read_run_directory(const fs::path& dir) {
  const RunDirectory run(dir);
  const std::string canonical = read_file(run.settings());
  const std::string name = fs::absolute(dir / "").parent_path().filename().string();
  if (run_id(canonical) != name) {
    fail(
        "{} was changed: the folder is named {}, its settings hash to {}; restore the file, or delete the folder and "
        "run the grid again",
        run.settings().string(), name, run_id(canonical));
  }
  WrittenSettings written = parse_toml_settings(canonical, run.settings().string());
  add_neutral_values(written);
  WrittenSettings local = read_toml_settings(run.local());
  written.values.merge(local.values);
  written.locations.merge(local.locations);
  return read_run_options(written, dir, {});
}

std::string canonical_text(RunOptions& options) {
  return canonical_settings(Identity::kResult, description_of(options));
}
std::string local_text(RunOptions& options) { return canonical_settings(Identity::kLocal, description_of(options)); }

RunOptions smoke(RunOptions options) {
  options.train.max_updates = kSmokeUpdates;
  options.train.epoch_updates = kSmokeUpdates;
  options.train.max_epochs = 1;
  return options;
}

}  // namespace tearless::engine
