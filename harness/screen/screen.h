// The display of a running sweep. On a terminal: a live line for each running run below a header, and a summary,
// redrawn in place. In a pipe, a file or a terminal that cannot move its cursor (TERM=dumb): plain lines only.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "harness/runs/progress.h"

namespace tearless::harness {

/// The header and one line for each run, of at most `columns` characters. Of a label, " · " separates the parts: those
/// that all runs share are left out, and long ones lose characters in their middle, but never so that two become alike.
/// The header names the parts that are shown, if all runs have the same axes: whole, or by the last words of their
/// names, or not at all, as there is room.
/// Where there is no room for all columns, the development score is left out first, then the speed, then the loss.
std::vector<std::string> progress_lines(const std::vector<Progress>& running, size_t columns);

struct TerminalSize {
  size_t rows = 24, columns = 80;
};
/// Its default where `terminal` does not say.
TerminalSize terminal_size(std::FILE* terminal);

/// True for a terminal that can move its cursor.
bool is_live(std::FILE* out);

/// True for such a terminal unless $NO_COLOR is set to anything but "".
bool has_colour(std::FILE* out);

class Screen {
 public:
  /// Borrows `out`. Errors of writing are ignored: a sweep outlives its terminal.
  explicit Screen(std::FILE* out);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool is_live() const { return live_; }

  /// Prints a permanent line above the live lines.
  void print(const std::string& line);

  /// Replaces the live lines. Does nothing if is_live() is false.
  void draw(const std::vector<Progress>& running, const std::string& summary);

  /// Erases the live lines.
  void clear();

 private:
  void write(const std::string& text) const;
  std::string coloured(const char* code, const std::string& line) const;

  std::FILE* out_;
  bool live_;
  bool colour_;
  std::vector<std::string> drawn_;
};

}  // namespace tearless::harness
