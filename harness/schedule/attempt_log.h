// log.txt of an attempt: what its program prints, bounded. A program that floods its output must not fill the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tearless::harness {

class AttemptLog {
 public:
  /// Where the file would grow beyond `most` bytes, its first and last `kept` bytes stay and a line between them says
  /// how many are left out.
  struct Limits {
    int64_t most = 8 << 20;
    int64_t kept = 1 << 20;
  };

  /// Opens or makes the file. MachineError or UserError where that is not possible.
  AttemptLog(const std::filesystem::path& file, Limits limits);
  ~AttemptLog();
  AttemptLog(const AttemptLog&) = delete;
  AttemptLog& operator=(const AttemptLog&) = delete;

  /// Silent where the disk is full: a log is no reason to lose a run.
  void append(std::string_view bytes);
  int descriptor() const { return fd_; }

 private:
  void shorten();
  void write(std::string_view bytes);

  Limits limits_;
  int fd_ = -1;
  int64_t size_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace tearless::harness
