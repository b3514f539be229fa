// The display of what changes, such as a running sweep. On a terminal: a frame of lines, drawn again in place, below
// lines that stay. In a pipe, a file or a terminal that cannot move its cursor (TERM=dumb): plain lines only.
#pragma once

#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/runs/progress.h"

namespace tearless::harness {

/// The header and one line for each run, of at most `columns`. Of a label, " · " separates the parts: those
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

/// Lines that are drawn in place. Where the terminal has no room for all, header and summary stay, and the number of
/// lines that are not shown is said.
struct Frame {
  std::string header = {};  // above the lines, if any of them is shown
  std::vector<std::string> lines = {};
  std::set<size_t> marked = {};  // lines in colour
  std::string more = {};         // follows "… and N more"
  std::string summary = {};      // the last line
};

/// The header, a line for each run, and the summary.
Frame frame_of(const std::vector<Progress>& running, size_t columns, const std::string& summary);

/// The display. While it lives, Ctrl-C ends no process; no two live at once. The terminal is as it was whenever no
/// frame is drawn, and when a signal ends or stops the process.
class Screen {
 public:
  /// Borrows `out`. Errors of writing are ignored: a sweep outlives its terminal.
  explicit Screen(std::FILE* out);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool is_live() const { return live_; }
  size_t columns() const { return terminal_size(out_).columns; }
  /// How often Ctrl-C was typed.
  static int interrupts();

  /// Prints a permanent line above the frame.
  void print(const std::string& line);

  /// Replaces the frame; {} erases it. If is_live() is false, prints the summary instead, once a minute.
  void draw(Frame frame);

  /// Calls `look`, which draws, until it returns false: each second, sooner in the first seconds, and after Ctrl-C or a
  /// resize at once. Then erases the frame.
  void follow(const std::function<bool()>& look);

 private:
  void redraw(const std::string& above);
  std::string text_of_frame() const;

  std::FILE* out_;
  bool live_;
  Frame frame_ = {};
  bool drawn_ = false;
  double last_summary_;
};

}  // namespace tearless::harness
