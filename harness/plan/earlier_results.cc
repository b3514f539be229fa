#include "harness/plan/earlier_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "base/print.h"
#include "base/words.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxKeys = 4;         // named in one line
constexpr size_t kMaxValueBytes = 24;  // of one value; checksums are longer

using SettingsText = std::map<std::string_view, std::string_view>;  // key → value, as run.toml has them

SettingsText settings_in(std::string_view text) {
  SettingsText settings;
  for (const std::string_view line : split_lines(text)) {
    const size_t equals = line.find(" = ");
    if (equals != std::string_view::npos) settings[line.substr(0, equals)] = line.substr(equals + 3);
  }
  return settings;
}

std::string value_text(const SettingsText& settings, std::string_view key) {
  const auto it = settings.find(key);
  if (it == settings.end()) return "–";
  if (it->second.size() <= kMaxValueBytes) return std::string(it->second);
  size_t end = kMaxValueBytes;
  while (end > 0 && (static_cast<unsigned char>(it->second[end]) & 0xC0) == 0x80) --end;  // whole characters only
  return std::string(it->second.substr(0, end)) + "…";
}

// "decode.beam (1 → 4), data.train_sha256 ("a3f…" → "77b…")"
std::string difference_between(std::string_view before, std::string_view now) {
  const SettingsText old_settings = settings_in(before), new_settings = settings_in(now);
  std::set<std::string_view> keys;
  for (const auto& [key, value] : old_settings) keys.insert(key);
  for (const auto& [key, value] : new_settings) keys.insert(key);
  std::vector<std::string> differences;
  for (const std::string_view key : keys) {
    const auto l = old_settings.find(key), r = new_settings.find(key);
    if (l != old_settings.end() && r != new_settings.end() && l->second == r->second) continue;
    differences.push_back(
        fmt::format("{} ({} → {})", key, value_text(old_settings, key), value_text(new_settings, key)));
  }
  if (differences.empty()) return "how their settings are written";
  const size_t more = differences.size() > kMaxKeys ? differences.size() - kMaxKeys : 0;
  differences.resize(differences.size() - more);
  const std::string text = fmt::format("{}", fmt::join(differences, ", "));
  return more == 0 ? text : fmt::format("{} and {}", text, counted(static_cast<int64_t>(more), "more setting"));
}

}  // namespace

void report_earlier_results(const Store& store, const fs::path& grid_file, const std::vector<Run>& without_result,
                            const Globals& globals) {
  // The axes may have been in another order.
  const auto point_of = [](const Run& run) {
    return std::pair(std::map(run.coordinates.begin(), run.coordinates.end()), run.seed);
  };
  std::map<std::pair<std::map<std::string, std::string>, int64_t>, std::string_view> open;  // point → settings
  for (const Run& run : without_result) {
    if (!run.settings.empty()) open.emplace(point_of(run), run.settings);
  }
  if (open.empty()) return;
  for (const Sweep& sweep : store.sweeps()) {  // newest first
    if (!is_of_grid(sweep, grid_file)) continue;
    std::map<std::string, int64_t> counts;  // difference → number of runs
    for (const RunRecord& run : store.runs_of(sweep.id)) {
      if (run.state != RunState::kDone && run.state != RunState::kDiverged) continue;
      const auto asked = open.find(point_of(run));
      if (asked == open.end()) continue;
      ++counts[difference_between(run.settings, asked->second)];
      open.erase(asked);
    }
    for (const auto& [difference, count] : counts) {
      const bool one = count == 1;
      notice(fmt::format("{} of this grid {} in {}; tearless table {}{} shows {}", counted(count, "finished run"),
                         one ? "differs" : "differ", difference, shell_word(sweep.id), options_again(globals),
                         one ? "it" : "them"));
    }
  }
}

}  // namespace tearless::harness
