#include "harness/launch/declared_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/memory_size.h"

namespace tearless::harness {
namespace {

constexpr int kMaxDeclared = 1024;  // a typing error is more likely than so many

struct Group {
  int count = 1;
  int64_t memory_bytes = 0;
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// "4 x 24GiB" or "24GiB".
std::optional<Group> parse_group(std::string_view text) {
  Group group;
  if (const size_t times = text.find('x'); times != std::string_view::npos) {
    const std::string_view count = trimmed(text.substr(0, times));
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), group.count);
    if (error != std::errc() || end != count.data() + count.size()) return std::nullopt;
    if (group.count < 1 || group.count > kMaxDeclared) return std::nullopt;
    text.remove_prefix(times + 1);
  }
  const std::optional<int64_t> memory = parse_memory(trimmed(text));
  if (!memory) return std::nullopt;
  group.memory_bytes = *memory;
  return group;
}

}  // namespace

DeclaredDevices::DeclaredDevices(std::string_view text, std::string_view option) {
  if (trimmed(text) == "none") return;
  for (std::string_view rest = text;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<Group> group = parse_group(trimmed(rest.substr(0, comma)));
    if (!group || devices_.size() + static_cast<size_t>(group->count) > kMaxDeclared) {
      fail(
          "{} = \"{}\" does not declare devices; write their number and memory, such as \"4 x 24GiB\" or "
          "\"2 x 24GiB, 80GiB\", at most {} of them, or \"none\"",
          option, text, kMaxDeclared);
    }
    for (int i = 0; i < group->count; ++i) {
      const int index = static_cast<int>(devices_.size());
      devices_.push_back({.uuid = fmt::format("declared-{}", index),
                          .name = fmt::format("declared {}", memory_text(group->memory_bytes)),
                          .memory_bytes = group->memory_bytes,
                          .index = index});
    }
    if (comma == rest.size()) return;
    rest.remove_prefix(comma + 1);
  }
}

DeviceUse DeclaredDevices::use_of(const std::string& uuid) {
  if (const auto use = uses_.find(uuid); use != uses_.end()) return use->second;
  const bool known = std::any_of(devices_.begin(), devices_.end(), [&](const Device& d) { return d.uuid == uuid; });
  return {.used_bytes = 0, .processes = {}, .error = known ? "" : "no GPU has this UUID"};
}

}  // namespace tearless::harness
