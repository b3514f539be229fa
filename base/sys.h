// The system calls that change something outside the process, each under its own name and with errno as usual. All of
// base, harness and engine call these and never the plain ones (tests/base/sys_test.cc reads the sources): so a test
// can number them, fail any of them, and kill a process between any two (base/fault.h).
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <cstddef>

namespace tearless::sys {

/// open(2) with O_CLOEXEC, for anything but reading.
int open_for_writing(const char* path, int flags, mode_t mode = 0666);
ssize_t write(int fd, const void* bytes, size_t size);
int fsync(int fd);
int ftruncate(int fd, off_t size);
int rename(const char* from, const char* to);
int unlink(const char* path);
int rmdir(const char* path);
int mkdir(const char* path, mode_t mode = 0777);
int flock(int fd, int operation);
pid_t fork();
int execve(const char* program, char* const* arguments, char* const* environment);
int kill(pid_t pid, int signal);
pid_t waitpid(pid_t pid, int* status, int options);
/// An error number, as posix_spawn(3) returns it, not in errno.
int posix_spawn(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment);

}  // namespace tearless::sys
