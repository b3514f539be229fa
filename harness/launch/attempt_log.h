// Writes log.txt of an attempt: the program's output, bounded in size so that a program that floods its output cannot
// fill the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tearless::harness {

class AttemptLog {
 public:
  /// When the file would exceed `most` bytes, it is cut to its first and last `kept` bytes, with a line between them
  /// that says how many bytes are left out.
  struct Limits {
    int64_t most = 8 << 20;
    int64_t kept = 1 << 20;
  };

  /// Opens or creates the file. MachineError or UserError if that fails.
  AttemptLog(const std::filesystem::path& file, Limits limits);
  ~AttemptLog();
  AttemptLog(const AttemptLog&) = delete;
  AttemptLog& operator=(const AttemptLog&) = delete;

  /// Appends output. Ignores write errors such as a full disk: the run continues without its log.
  void append(std::string_view bytes);
  int descriptor() const { return fd_; }

 private:
  void shorten();
  void write(std::string_view bytes);

  Limits limits_;
  int fd_ = -1;
  int64_t size_ = 0;      // of the file, bytes
  int64_t left_out_ = 0;  // bytes removed so far
};

}  // namespace tearless::harness
