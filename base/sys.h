// The system calls that change files, locks or processes, with their usual names, arguments and errno. Code in
// base/, harness/ and engine/ calls these instead of the plain ones (tests/base/sys_test.cc checks the sources), so
// that tests can number them, make any of them fail, and kill a process between any two (base/fault.h).
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace tearless::sys {

// New files and folders cannot be written by others of the group, whatever the umask is: a board and grants are among
// them (harness/grants/trust.h).

/// open(2) with O_CLOEXEC added, for any access but reading.
int open_for_writing(const char* path, int flags, mode_t mode = 0644);

/// write(2). Writes only half of the bytes if a fault plan is active: callers must handle short writes.
ssize_t write(int fd, const void* bytes, size_t size);

int fsync(int fd);
int ftruncate(int fd, off_t size);
int rename(const char* from, const char* to);
int link(const char* from, const char* to);
int symlink(const char* target, const char* path);
int unlink(const char* path);
int rmdir(const char* path);
int mkdir(const char* path, mode_t mode = 0755);
int flock(int fd, int operation);
pid_t fork();
int execve(const char* program, char* const* arguments, char* const* environment);
int kill(pid_t pid, int signal);
pid_t waitpid(pid_t pid, int* status, int options);

}  // namespace tearless::sys
