#include "harness/submit/kept_data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory_size.h"
#include "base/settings.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLarge = uint64_t{1} << 30;  // bytes that take a while to copy

constexpr const char* kNotAsDescribed = "the answer is not as docs/run_directory.md describes";

/// The folder of files with these checksums. Files that belong together are told apart by the ends of their names; the
/// rest of a name is not part of the hash, so equal files of another name are in the same folder.
std::string folder_of(const std::map<std::string, std::string>& checksums) {
  Sha256 hash;
  for (const auto& [ending, sha256] : checksums) hash.update(ending + " " + sha256 + "\n");
  return hash.hex().substr(0, 16);
}

uint64_t size_of_source(const Workspace& workspace, const KeptFile& file) {
  std::error_code error;
  if (!fs::exists(file.source, error)) {
    fail("{} is missing, and so is the copy of it that runs need, {}; restore the file and repeat this command",
         file.source, (workspace.root() / file.copy).string());
  }
  const uint64_t size = fs::file_size(file.source, error);
  return error ? 0 : size;  // the copying says what is wrong
}

void require_room(const Workspace& workspace, uint64_t bytes) {
  std::error_code unknown;
  const fs::space_info disk = fs::space(workspace.data(), unknown);
  if (unknown || disk.available >= bytes) return;
  throw MachineError(
      fmt::format("copies of the runs' data need {} in {}, where {} are free; make room, or set keep_data = false in "
                  "the grid's [policy]: the runs then read the files where they lie",
                  memory_text_up(static_cast<int64_t>(bytes)), workspace.data().string(),
                  memory_text_down(static_cast<int64_t>(disk.available))));
}

/// `left`: bytes of this file and those that are copied after it.
void make_copy(const Workspace& workspace, const KeptFile& file, uint64_t left) {
  const fs::path copy = workspace.root() / file.copy;
  const fs::path partial = copy.parent_path() / fmt::format(".{}.{}", copy.filename().string(), ::getpid());
  make_folders(copy.parent_path());
  remove_file(partial);
  try {
    if (!clone_file(file.source, partial)) {
      require_room(workspace, left);
      copy_file_unsynced(file.source, partial);
    }
    if (sha256_of_file(partial) != file.sha256) {
      fail("{} has changed since its runs were checked; submit the grid again, or restore the file", file.source);
    }
    publish_file(partial, copy);
  } catch (const UserError&) {
    remove_file(partial);
    throw;
  }
}

}  // namespace

KeptData::KeptData(const Workspace& workspace, fs::path program)
    : workspace_(workspace), program_(std::move(program)) {}

const std::string& KeptData::local_text(const InputFiles& files, const std::string& local) {
  std::map<std::string, std::string>& texts = known_[files];
  if (const auto known = texts.find(local); known != texts.end()) return known->second;
  return texts.emplace(local, redirected(files, local)).first->second;
}

std::string KeptData::redirected(const InputFiles& files, const std::string& local) {
  std::string text;
  std::set<std::string> found;
  for (const std::string_view line : split_lines(local)) {
    const std::string key(line.substr(0, line.find(" = ")));
    const auto named = files.find(key);
    if (named == files.end()) {
      text.append(line).push_back('\n');
      continue;
    }
    const WrittenSettings written = parse_toml_settings(line, fmt::format("`{} check`: local", program_.string()));
    const auto value = written.values.find(key);
    if (value == written.values.end() || !value->second.is_string()) break;
    text += key + " = " + toml_value(redirected_path(key, value->second, named->second)) + "\n";
    found.insert(key);
  }
  for (const auto& [key, checksums] : files) {
    if (found.contains(key)) continue;
    fail("`{} check`: {}: \"data\" names {}, but \"local\" has no line {} = \"PATH\"", program_.string(),
         kNotAsDescribed, key, key);
  }
  return text;
}

std::string KeptData::redirected_path(const std::string& key, const std::string& path,
                                      const std::map<std::string, std::string>& checksums) {
  const std::string stem = fs::path(path).filename();
  const fs::path folder = workspace_.data() / folder_of(checksums);
  for (const auto& [ending, sha256] : checksums) {
    const std::string name = stem + ending;
    if (!fs::path(path).is_absolute() || fs::path(name).filename() != name) {
      fail("`{} check`: {}: {} is to be the absolute path of files, but is \"{}\" before \"{}\"", program_.string(),
           kNotAsDescribed, key, path, ending);
    }
    if (sha256.size() != 64) {
      fail("`{} check`: {}: \"{}\" is no SHA-256 of {}{}", program_.string(), kNotAsDescribed, sha256, path, ending);
    }
    const std::string copy = (folder / name).lexically_relative(workspace_.root());
    files_.insert_or_assign(copy, KeptFile{.copy = copy, .source = path + ending, .sha256 = sha256});
  }
  return (folder / stem).lexically_relative(workspace_.run("any").root());
}

std::vector<KeptFile> KeptData::files() const {
  std::vector<KeptFile> all;
  for (const auto& [copy, file] : files_) all.push_back(file);
  return all;
}

std::string local_text_for_elsewhere(const Workspace& workspace, const std::string& local) {
  const std::string from_run =
      " = \"" + (workspace.data().lexically_relative(workspace.run("any").root()) / "").string();
  std::string text;
  for (const std::string_view line : split_lines(local)) {
    const size_t at = line.find(from_run);
    if (at == std::string::npos || at != line.find(" = ")) {
      text.append(line).push_back('\n');
      continue;
    }
    const std::string key(line.substr(0, at));
    const std::string path = parse_toml_settings(line, "local.toml").values.at(key);
    text +=
        key + " = " + toml_value((fs::absolute(workspace.run("any").root()) / path).lexically_normal().string()) + "\n";
  }
  return text;
}

void make_copies(const Workspace& workspace, const std::vector<KeptFile>& files, const Notice& notice) {
  std::vector<std::pair<const KeptFile*, uint64_t>> missing;  // with their sizes
  uint64_t left = 0;
  for (const KeptFile& file : files) {
    if (fs::exists(workspace.root() / file.copy)) continue;
    missing.emplace_back(&file, size_of_source(workspace, file));
    left += missing.back().second;
  }
  if (left > kLarge) {
    notice(
        fmt::format("Copying {} of data to {}; with keep_data = false in the grid's [policy] the runs read them "
                    "where they lie",
                    memory_text(static_cast<int64_t>(left)), workspace.data().string()));
  }
  for (const auto& [file, size] : missing) {
    make_copy(workspace, *file, left);
    left -= size;
  }
}

}  // namespace tearless::harness
