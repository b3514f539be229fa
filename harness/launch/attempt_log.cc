#include "harness/launch/attempt_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/sys.h"

namespace tearless::harness {

AttemptLog::AttemptLog(const std::filesystem::path& file, Limits limits) : limits_(limits) {
  fd_ = sys::open_for_writing(file.c_str(), O_RDWR | O_CREAT | O_APPEND);
  if (fd_ < 0) fail_errno("write", file);
  struct stat info {};
  if (::fstat(fd_, &info) == 0) size_ = info.st_size;
}

AttemptLog::~AttemptLog() { ::close(fd_); }

void AttemptLog::append(std::string_view bytes) {
  // Of output longer than the part that is retained, keep the end: it explains a crash.
  if (static_cast<int64_t>(bytes.size()) > limits_.kept) {
    left_out_ += static_cast<int64_t>(bytes.size()) - limits_.kept;
    bytes.remove_prefix(bytes.size() - static_cast<size_t>(limits_.kept));
  }
  if (size_ + static_cast<int64_t>(bytes.size()) > limits_.most) shorten();
  write(bytes);
}

void AttemptLog::shorten() {
  std::string tail(static_cast<size_t>(std::min(limits_.kept, size_)), '\0');
  const ssize_t got = ::pread(fd_, tail.data(), tail.size(), size_ - static_cast<int64_t>(tail.size()));
  tail.resize(got > 0 ? static_cast<size_t>(got) : 0);
  const int64_t head = std::min(limits_.kept, size_ - static_cast<int64_t>(tail.size()));
  if (sys::ftruncate(fd_, head) != 0) return;
  left_out_ += size_ - head - static_cast<int64_t>(tail.size());
  size_ = head;
  write(fmt::format("\n[tearless: about {} bytes of output are left out here]\n", left_out_));
  write(tail);
}

void AttemptLog::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = sys::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    size_ += n;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace tearless::harness
