#include "base/sys.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/fault.h"

namespace tearless::sys {
namespace {

// True if the fault plan makes the call fail; errno is then set.
bool fails(fault::Kind kind, const char* what) {
  const int error = fault::point(kind, what);
  if (error != 0) errno = error;
  return error != 0;
}

}  // namespace

int open_for_writing(const char* path, int flags, mode_t mode) {
  if (fails(fault::kOpen, path)) return -1;
  return ::open(path, flags | O_CLOEXEC, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (fails(fault::kWrite, "")) return -1;
  // In halves, so that a process can be killed, or the disk become full, in the middle of a line.
  return ::write(fd, bytes, fault::is_active() && size > 1 ? size / 2 : size);
}

int fsync(int fd) {
  if (fails(fault::kSync, "")) return -1;
  const int result = ::fsync(fd);
  if (result == 0) fault::synced(fd);
  return result;
}

int ftruncate(int fd, off_t size) { return fails(fault::kCut, "") ? -1 : ::ftruncate(fd, size); }
int rename(const char* from, const char* to) { return fails(fault::kRename, to) ? -1 : ::rename(from, to); }
int link(const char* from, const char* to) { return fails(fault::kRename, to) ? -1 : ::link(from, to); }
int symlink(const char* target, const char* path) { return fails(fault::kRename, path) ? -1 : ::symlink(target, path); }
int unlink(const char* path) { return fails(fault::kRemove, path) ? -1 : ::unlink(path); }
int rmdir(const char* path) { return fails(fault::kRemove, path) ? -1 : ::rmdir(path); }
int mkdir(const char* path, mode_t mode) { return fails(fault::kMakeFolder, path) ? -1 : ::mkdir(path, mode); }
int flock(int fd, int operation) { return fails(fault::kLock, "") ? -1 : ::flock(fd, operation); }

pid_t fork() {
  if (fails(fault::kFork, "")) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) fault::note_child();
  return pid;
}

int execve(const char* program, char* const* arguments, char* const* environment) {
  return fails(fault::kExec, program) ? -1 : ::execve(program, arguments, environment);
}

int kill(pid_t pid, int signal) { return fails(fault::kKill, "") ? -1 : ::kill(pid, signal); }

pid_t waitpid(pid_t pid, int* status, int options) {
  return fails(fault::kWait, "") ? -1 : ::waitpid(pid, status, options);
}

}  // namespace tearless::sys
