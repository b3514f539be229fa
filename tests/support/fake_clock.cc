// Preloaded into a program (LD_PRELOAD), puts its steady clock forward by the seconds that the file TEARLESS_FAKE_CLOCK
// contains. Each call reads the file again, so a test can let ten minutes pass while the program runs. Its wall clock
// is wrong by the seconds that TEARLESS_FAKE_TIME says.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long code = ::syscall(SYS_clock_gettime, clock, time);
  const char* file = std::getenv("TEARLESS_FAKE_CLOCK");
  if (code == 0 && clock == CLOCK_MONOTONIC && file) {
    time_t seconds = 0;
    std::ifstream(file) >> seconds;
    time->tv_sec += seconds;
  }
  return static_cast<int>(code);
}

extern "C" time_t time(time_t* now) noexcept {
  const char* wrong_by = std::getenv("TEARLESS_FAKE_TIME");
  timespec real{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
  const time_t shown = real.tv_sec + (wrong_by ? std::atoll(wrong_by) : 0);
  if (now) *now = shown;
  return shown;
}
