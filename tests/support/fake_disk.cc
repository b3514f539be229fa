// Preloaded into programs (LD_PRELOAD), shows them a shared folder as a host with slow caches sees it: files of other
// hosts appear late, in another order, and first with a part of their bytes; what was replaced or deleted stays for a
// while. What this host changes goes to the folder at once, so link() and O_EXCL are atomic between hosts, as with NFS,
// and it sees its own changes at once.
//   TEARLESS_FAKE_DISK         the folder, an absolute path without symbolic links
//   TEARLESS_FAKE_DISK_CACHE   a folder that processes of one host share, and no other host's
//   TEARLESS_FAKE_DISK_DELAY   seconds: each path has another delay up to this, drawn again at each look at the folder
//   TEARLESS_FAKE_DISK_STALE   a file, or not set: while it is there, what is in the folder cannot be read (ESTALE), or
//                              of that only the files of the name that is its text
// Staler than NFS in one way: there open() asks the server for an existing file's size. What is open stays true, and
// listings drop deleted names at once. System calls without libc, and paths through symbolic links, see the folder
// itself.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>

namespace {

constexpr off_t kMaxCopied = 4 << 20;  // larger files are shown as they are

// What this host believes about a path, in CACHE/<hash>; the bytes of a file in CACHE/<hash>.data. What it has itself
// changed is no belief: CACHE/own-<inode> exists. Not by path, since it may rename a folder above.
struct Belief {
  double until = 0;  // then it looks again
  bool exists = false;
  bool removed = false;  // by this host
  bool copied = false;
  struct stat status {};
};

double seconds(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double now() {
  timespec time{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &time);
  return seconds(time);
}

const std::string& setting(const char* name) {
  static std::map<std::string, std::string> values;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const char* value = std::getenv(name);
  return values.try_emplace(name, value ? value : "").first->second;
}

double draw_delay() {
  static thread_local std::mt19937 random(std::random_device{}());
  const double most = std::atof(setting("TEARLESS_FAKE_DISK_DELAY").c_str());
  return std::uniform_real_distribution(0.1 * most, most)(random);
}

int true_open(const std::string& path, int flags, mode_t mode = 0) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, mode));
}

bool true_status(const std::string& path, struct stat* status) {
  return ::syscall(SYS_newfstatat, AT_FDCWD, path.c_str(), status, AT_SYMLINK_NOFOLLOW) == 0;
}

// An absolute path without . and .., by spelling.
std::string absolute(int folder, const char* path) {
  char base[PATH_MAX] = "";
  if (path[0] != '/') {
    const std::string link = folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(folder);
    const ssize_t size = ::readlink(link.c_str(), base, sizeof base - 1);
    if (size > 0) base[size] = '\0';
  }
  std::string result;
  std::string rest = std::string(base) + "/" + path;
  for (size_t at = 0; at < rest.size();) {
    const size_t end = std::min(rest.find('/', at), rest.size());
    const std::string part = rest.substr(at, end - at);
    if (part == "..")
      result.erase(std::min(result.rfind('/'), result.size()));
    else if (!part.empty() && part != ".")
      result += "/" + part;
    at = end + 1;
  }
  return result;
}

// Whether the path is below the folder; the folder itself is always there.
bool is_shared(const std::string& path) {
  const std::string& folder = setting("TEARLESS_FAKE_DISK");
  return !folder.empty() && path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
         path[folder.size()] == '/';
}

// One process of the host at a time looks at its beliefs.
class Beliefs {
 public:
  Beliefs()
      : folder_(setting("TEARLESS_FAKE_DISK_CACHE")), lock_(true_open(folder_ + "/lock", O_RDWR | O_CREAT, 0666)) {
    ::fcntl(lock_, F_SETFD, FD_CLOEXEC);
    while (::flock(lock_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~Beliefs() { ::syscall(SYS_close, lock_); }
  Beliefs(const Beliefs&) = delete;
  Beliefs& operator=(const Beliefs&) = delete;

  std::string file(const std::string& path) const {
    return folder_ + "/" + std::to_string(std::hash<std::string>{}(path));
  }

  // What the host sees at the path.
  Belief look(const std::string& path) {
    struct stat status {};
    const bool exists = true_status(path, &status);
    if (exists && ::syscall(SYS_faccessat, AT_FDCWD, own_file(path).c_str(), F_OK) == 0)
      return {.exists = true, .status = status};
    Belief belief;
    const bool known = read(path, &belief);
    if (known && (belief.removed ? !exists : now() < belief.until)) return belief;
    const bool was_there = known && belief.exists;
    const bool is_new = exists && now() - seconds(status.st_ctim) < draw_delay();
    belief = {.until = now() + draw_delay(), .exists = exists && (known || !is_new), .status = status};
    if (belief.exists) copy(path, was_there, is_new, &belief);
    write(path, belief);
    return belief;
  }

  // This host has changed what is there.
  void own(const std::string& path) {
    struct stat status {};
    if (true_status(path, &status))
      ::syscall(SYS_close, true_open(own_file(path), O_WRONLY | O_CREAT, 0666));
    else
      write(path, {.removed = true});
  }

 private:
  // An inode's number is used again, but not with the same time of birth.
  std::string own_file(const std::string& path) const {
    struct statx status {};
    ::syscall(SYS_statx, AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status);
    return folder_ + "/own-" + std::to_string(status.stx_ino) + "-" + std::to_string(status.stx_btime.tv_sec) + "." +
           std::to_string(status.stx_btime.tv_nsec);
  }

  bool read(const std::string& path, Belief* belief) const {
    const int fd = true_open(file(path), O_RDONLY);
    const bool done = fd >= 0 && ::read(fd, belief, sizeof *belief) == sizeof *belief;
    if (fd >= 0) ::syscall(SYS_close, fd);
    return done;
  }

  void write(const std::string& path, const Belief& belief) const {
    const int fd = true_open(file(path), O_WRONLY | O_CREAT, 0666);
    [[maybe_unused]] const ssize_t size = ::write(fd, &belief, sizeof belief);
    ::syscall(SYS_close, fd);
  }

  // Keeps the bytes of a file, of one that has just appeared only a part.
  void copy(const std::string& path, bool was_there, bool is_new, Belief* belief) const {
    if (!S_ISREG(belief->status.st_mode) || belief->status.st_size > kMaxCopied) return;
    const int from = true_open(path, O_RDONLY);
    if (from < 0) return;
    const std::string data = file(path) + ".data";
    ::syscall(SYS_unlinkat, AT_FDCWD, data.c_str(), 0);  // an earlier copy may be open
    const int to = true_open(data, O_WRONLY | O_CREAT | O_EXCL, 0666);
    off_t wanted = belief->status.st_size;
    if (!was_there && is_new) wanted /= 2;
    off_t size = 0;
    while (size < wanted) {
      const ssize_t part = ::sendfile(to, from, nullptr, static_cast<size_t>(wanted - size));
      if (part <= 0) break;
      size += part;
    }
    belief->status.st_size = size;
    belief->copied = true;
    ::syscall(SYS_close, from);
    ::syscall(SYS_close, to);
  }

  std::string folder_;
  int lock_;
};

// What the host sees at a path of the shared folder; without its folders it sees nothing.
Belief look(const std::string& path) {
  Beliefs beliefs;
  for (size_t at = setting("TEARLESS_FAKE_DISK").size() + 1; (at = path.find('/', at)) != std::string::npos; ++at)
    if (!beliefs.look(path.substr(0, at)).exists) return {};
  return beliefs.look(path);
}

// After a call that changed a path.
template <typename Result>
Result changed(Result result, int folder, const char* path) {
  const int code = errno;
  const std::string full = absolute(folder, path);
  if (result >= 0 && is_shared(full)) Beliefs().own(full);
  errno = code;
  return result;
}

bool is_stale(const std::string& path) {
  const std::string& file = setting("TEARLESS_FAKE_DISK_STALE");
  const int fd = file.empty() ? -1 : true_open(file, O_RDONLY);
  if (fd < 0) return false;
  char text[NAME_MAX + 1] = "";
  const ssize_t size = ::read(fd, text, NAME_MAX);
  ::close(fd);
  return size <= 0 || path.substr(path.rfind('/') + 1) == text;
}

int open_seen(int folder, const char* path, int flags, mode_t mode) {
  const std::string full = absolute(folder, path);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  if (is_shared(full) && !writes) {
    if (is_stale(full)) return errno = ESTALE, -1;
    const Belief belief = look(full);
    if (!belief.exists) return errno = ENOENT, -1;
    if (belief.copied) return true_open(Beliefs().file(full) + ".data", flags);
  }
  const int fd = static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
  return writes ? changed(fd, folder, path) : fd;
}

// Of a path that is shared: 0, or -1 with errno; of a symbolic link its own.
int status_seen(const std::string& full, struct stat* status) {
  if (is_stale(full)) return errno = ESTALE, -1;
  const Belief belief = look(full);
  if (!belief.exists) return errno = ENOENT, -1;
  *status = belief.status;
  return 0;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::map<DIR*, std::string>& listings() {
  static auto* const open = new std::map<DIR*, std::string>;
  return *open;
}
std::mutex listings_mutex;

DIR* listing_of(int fd) {
  DIR* listing = real<DIR*(int)>("fdopendir")(fd);
  const std::string path = absolute(fd, ".");
  if (listing && is_shared(path + "/.")) {
    const std::lock_guard lock(listings_mutex);
    listings()[listing] = path;
  }
  return listing;
}

}  // namespace

// Defined by their names in the library: glibc's headers declare some with other types or as inline functions.
#define SAME_AS(name) __attribute__((alias(name)))
extern "C" {

int fake_open(const char* path, int flags, ...) asm("open");
int fake_open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_seen(AT_FDCWD, path, flags, mode);
}
int fake_open64(const char* path, int flags, ...) asm("open64");
int fake_open64(const char* path, int flags, ...) SAME_AS("open");

int fake_openat(int folder, const char* path, int flags, ...) asm("openat");
int fake_openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_seen(folder, path, flags, mode);
}
int fake_openat64(int folder, const char* path, int flags, ...) asm("openat64");
int fake_openat64(int folder, const char* path, int flags, ...) SAME_AS("openat");

int fake_open_2(const char* path, int flags) asm("__open_2");
int fake_open_2(const char* path, int flags) { return open_seen(AT_FDCWD, path, flags, 0); }
int fake_open64_2(const char* path, int flags) asm("__open64_2");
int fake_open64_2(const char* path, int flags) SAME_AS("__open_2");

int fake_creat(const char* path, mode_t mode) asm("creat");
int fake_creat(const char* path, mode_t mode) { return open_seen(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

FILE* fake_fopen(const char* path, const char* mode) asm("fopen");
FILE* fake_fopen(const char* path, const char* mode) {
  const bool both = std::strchr(mode, '+') != nullptr;
  int flags = both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  if (mode[0] == 'w') flags |= O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags |= O_CREAT | O_APPEND;
  if (std::strchr(mode, 'x')) flags |= O_EXCL;
  if (std::strchr(mode, 'e')) flags |= O_CLOEXEC;
  const int fd = open_seen(AT_FDCWD, path, flags, 0666);
  return fd < 0 ? nullptr : ::fdopen(fd, mode);
}
FILE* fake_fopen64(const char* path, const char* mode) asm("fopen64");
FILE* fake_fopen64(const char* path, const char* mode) SAME_AS("fopen");

int fake_fstatat(int folder, const char* path, struct stat* status, int flags) asm("fstatat");
int fake_fstatat(int folder, const char* path, struct stat* status, int flags) {
  const std::string full = absolute(folder, path);
  if (path[0] != '\0' && is_shared(full)) {
    const int code = status_seen(full, status);
    if (code != 0 || !S_ISLNK(status->st_mode) || (flags & AT_SYMLINK_NOFOLLOW) != 0) return code;
  }
  return static_cast<int>(::syscall(SYS_newfstatat, folder, path, status, flags));
}
int fake_fstatat64(int folder, const char* path, struct stat* status, int flags) asm("fstatat64");
int fake_fstatat64(int folder, const char* path, struct stat* status, int flags) SAME_AS("fstatat");

int fake_stat(const char* path, struct stat* status) asm("stat");
int fake_stat(const char* path, struct stat* status) { return fake_fstatat(AT_FDCWD, path, status, 0); }
int fake_stat64(const char* path, struct stat* status) asm("stat64");
int fake_stat64(const char* path, struct stat* status) SAME_AS("stat");

int fake_lstat(const char* path, struct stat* status) asm("lstat");
int fake_lstat(const char* path, struct stat* status) {
  return fake_fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int fake_lstat64(const char* path, struct stat* status) asm("lstat64");
int fake_lstat64(const char* path, struct stat* status) SAME_AS("lstat");

// As programs call these that are linked for a C library before 2.33.
int fake_xstat(int, const char* path, struct stat* status) asm("__xstat");
int fake_xstat(int, const char* path, struct stat* status) { return fake_stat(path, status); }
int fake_xstat64(int, const char* path, struct stat* status) asm("__xstat64");
int fake_xstat64(int, const char* path, struct stat* status) SAME_AS("__xstat");
int fake_lxstat(int, const char* path, struct stat* status) asm("__lxstat");
int fake_lxstat(int, const char* path, struct stat* status) { return fake_lstat(path, status); }
int fake_lxstat64(int, const char* path, struct stat* status) asm("__lxstat64");
int fake_lxstat64(int, const char* path, struct stat* status) SAME_AS("__lxstat");

int fake_statx(int folder, const char* path, int flags, unsigned mask, struct statx* status) asm("statx");
int fake_statx(int folder, const char* path, int flags, unsigned mask, struct statx* status) {
  const std::string full = absolute(folder, path);
  struct stat seen {};
  const bool shared = path[0] != '\0' && is_shared(full);
  if (shared && status_seen(full, &seen) != 0) return -1;
  const int code = static_cast<int>(::syscall(SYS_statx, folder, path, flags, mask, status));
  if (shared && code == 0) status->stx_size = static_cast<uint64_t>(seen.st_size);
  return code;
}

int fake_faccessat(int folder, const char* path, int mode, int flags) asm("faccessat");
int fake_faccessat(int folder, const char* path, int mode, int flags) {
  const std::string full = absolute(folder, path);
  struct stat status {};
  if (is_shared(full) && (mode == F_OK || status_seen(full, &status) != 0)) return status_seen(full, &status);
  return static_cast<int>(::syscall(SYS_faccessat2, folder, path, mode, flags));
}
int fake_access(const char* path, int mode) asm("access");
int fake_access(const char* path, int mode) { return fake_faccessat(AT_FDCWD, path, mode, 0); }

DIR* fake_fdopendir(int fd) asm("fdopendir");
DIR* fake_fdopendir(int fd) { return listing_of(fd); }
DIR* fake_opendir(const char* path) asm("opendir");
DIR* fake_opendir(const char* path) {
  const int fd = open_seen(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  return fd < 0 ? nullptr : listing_of(fd);
}
int fake_closedir(DIR* listing) asm("closedir");
int fake_closedir(DIR* listing) {
  {
    const std::lock_guard lock(listings_mutex);
    listings().erase(listing);
  }
  return real<int(DIR*)>("closedir")(listing);
}
dirent* fake_readdir(DIR* listing) asm("readdir");
dirent* fake_readdir(DIR* listing) {
  static auto* const next = real<dirent*(DIR*)>("readdir");
  std::string folder;
  {
    const std::lock_guard lock(listings_mutex);
    if (const auto found = listings().find(listing); found != listings().end()) folder = found->second;
  }
  const int code = errno;  // at the end of a listing it says whether that is one
  dirent* entry = next(listing);
  while (!folder.empty() && entry && entry->d_name[0] != '\0' && std::strcmp(entry->d_name, ".") != 0 &&
         std::strcmp(entry->d_name, "..") != 0 && !look(folder + "/" + entry->d_name).exists) {
    errno = code;
    entry = next(listing);
  }
  return entry;
}
dirent* fake_readdir64(DIR* listing) asm("readdir64");
dirent* fake_readdir64(DIR* listing) SAME_AS("readdir");

int fake_renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) asm("renameat2");
int fake_renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const int code = static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  return changed(changed(code, from_folder, from), to_folder, to);
}
int fake_renameat(int from_folder, const char* from, int to_folder, const char* to) asm("renameat");
int fake_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return fake_renameat2(from_folder, from, to_folder, to, 0);
}
int fake_rename(const char* from, const char* to) asm("rename");
int fake_rename(const char* from, const char* to) { return fake_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int fake_linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) asm("linkat");
int fake_linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return changed(static_cast<int>(::syscall(SYS_linkat, from_folder, from, to_folder, to, flags)), to_folder, to);
}
int fake_link(const char* from, const char* to) asm("link");
int fake_link(const char* from, const char* to) { return fake_linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int fake_symlinkat(const char* target, int folder, const char* path) asm("symlinkat");
int fake_symlinkat(const char* target, int folder, const char* path) {
  return changed(static_cast<int>(::syscall(SYS_symlinkat, target, folder, path)), folder, path);
}
int fake_symlink(const char* target, const char* path) asm("symlink");
int fake_symlink(const char* target, const char* path) { return fake_symlinkat(target, AT_FDCWD, path); }

int fake_unlinkat(int folder, const char* path, int flags) asm("unlinkat");
int fake_unlinkat(int folder, const char* path, int flags) {
  return changed(static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags)), folder, path);
}
int fake_unlink(const char* path) asm("unlink");
int fake_unlink(const char* path) { return fake_unlinkat(AT_FDCWD, path, 0); }
int fake_rmdir(const char* path) asm("rmdir");
int fake_rmdir(const char* path) { return fake_unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int fake_mkdirat(int folder, const char* path, mode_t mode) asm("mkdirat");
int fake_mkdirat(int folder, const char* path, mode_t mode) {
  return changed(static_cast<int>(::syscall(SYS_mkdirat, folder, path, mode)), folder, path);
}
int fake_mkdir(const char* path, mode_t mode) asm("mkdir");
int fake_mkdir(const char* path, mode_t mode) { return fake_mkdirat(AT_FDCWD, path, mode); }

int fake_truncate(const char* path, off_t size) asm("truncate");
int fake_truncate(const char* path, off_t size) {
  return changed(static_cast<int>(::syscall(SYS_truncate, path, size)), AT_FDCWD, path);
}

}  // extern "C"
