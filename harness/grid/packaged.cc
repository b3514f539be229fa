#include "harness/grid/packaged.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// Beside the installed program, else in the source tree of build/bin/tearless; empty where neither is.
fs::path packaged_folder() {
  std::error_code unreachable;
  const fs::path bin = fs::read_symlink("/proc/self/exe", unreachable).parent_path();
  for (const fs::path& folder : {bin / "../share/tearless/grids", bin / "../../grids"}) {
    if (fs::is_regular_file(folder / "demo.toml", unreachable)) return folder.lexically_normal();
  }
  return {};
}

}  // namespace

std::optional<fs::path> packaged_grid(const std::string& word) {
  if (word.empty() || word.find_first_of("./=") != std::string::npos) return std::nullopt;
  const fs::path folder = packaged_folder(), file = folder / (word + ".toml");
  std::error_code unreachable;
  return !folder.empty() && fs::is_regular_file(file, unreachable) ? std::optional(file) : std::nullopt;
}

std::string packaged_advice(const std::string& word) {
  const fs::path folder = packaged_folder();
  std::vector<std::string> all, whole;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.path().extension() == ".toml") all.push_back(entry.path().stem().string());
  }
  if (all.empty()) return "";
  std::ranges::sort(all);
  std::ranges::copy_if(all, std::back_inserter(whole),
                       [](const std::string& name) { return name.find('_') == std::string::npos; });
  return fmt::format("; the packaged grids in {} can be named, too, such as {}{}", folder.string(),
                     fmt::join(whole, ", "), did_you_mean(word, all));
}

}  // namespace tearless::harness
