#include "harness/grants/trust.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

std::string name_of_user(uid_t uid) {
  const passwd* user = ::getpwuid(uid);
  return user ? user->pw_name : fmt::format("user {}", uid);
}

std::string fault_of(const fs::path& given) {
  const fs::path path = fs::absolute(given).lexically_normal();
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return fmt::format("{} belongs to {}, who could have your user run anything: use a workspace of your own",
                       path.string(), name_of_user(info.st_uid));
  }
  const bool replaces_nothing = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0 && info.st_uid == 0;
  const bool by_group = (info.st_mode & S_IWGRP) != 0 && !is_alone_in(info.st_gid, ::geteuid());
  if (replaces_nothing || (!by_group && (info.st_mode & S_IWOTH) == 0)) return "";
  return fmt::format("{} can be written by {}, who could have your user run anything: chmod {} {}", path.string(),
                     by_group ? "others of its group" : "anybody", by_group ? "go-w" : "o-w",
                     shell_word(path.string()));
}

}  // namespace

bool is_alone_in(unsigned gid, unsigned uid) {
  const group* const found = ::getgrgid(gid);
  if (!found) return false;
  std::set<std::string> members;
  for (char** member = found->gr_mem; *member; ++member) members.insert(*member);
  std::string self;
  ::setpwent();
  while (const passwd* const user = ::getpwent()) {
    if (user->pw_uid == uid) self = user->pw_name;
    if (user->pw_gid == gid) members.insert(user->pw_name);
  }
  ::endpwent();
  return !self.empty() && std::ranges::all_of(members, [&](const std::string& name) { return name == self; });
}

std::string distrust(std::initializer_list<fs::path> paths) {
  for (const fs::path& path : paths) {
    if (std::string fault = fault_of(path); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace tearless::harness
