// A program in a terminal of its own, for what it does only there.
#pragma once

#include <sys/types.h>

#include <string>

#include "tests/support/process.h"

namespace tearless::test {

class Terminal {
 public:
  /// Starts the program in a pseudo-terminal of 24 rows and 80 columns, with TERM=xterm.
  explicit Terminal(const Command& command);
  ~Terminal();  ///< kills it
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Reads until the terminal has shown `text`, for a minute at most. False if the program has ended before.
  bool shows(const std::string& text);
  /// Types the characters; "\x03" is Ctrl-C.
  void type(const std::string& characters) const;
  void resize(unsigned short rows, unsigned short columns) const;
  /// Signals the program.
  void signal(int number) const;
  /// Closes it, as a logout does: each process of its session gets SIGHUP, and no process can read or write the
  /// terminal any more. Returns when the program has ended.
  void hang_up();
  /// Reads to the end. Returns the exit code, 128 + signal where a signal ended the program.
  int wait();

  /// All that was shown so far.
  const std::string& shown() const { return shown_; }

 private:
  bool read_more();

  int master_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
};

}  // namespace tearless::test
