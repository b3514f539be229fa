// The display of a running sweep. On a terminal: one live line for each running job and a summary, redrawn in place. In
// a pipe or file: plain lines only.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "harness/schedule/progress.h"

namespace tearless::harness {

/// The live line of one job, at most `columns` characters.
std::string progress_line(const Progress& progress, size_t columns);

class Screen {
 public:
  /// Borrows `out`. Live lines are drawn only if it is a terminal.
  explicit Screen(std::FILE* out);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool is_live() const { return live_; }

  /// Prints a permanent line above the live lines.
  void print(const std::string& line);

  /// Replaces the live lines. Does nothing if the output is not a terminal.
  void draw(const std::vector<Progress>& running, const std::string& summary);

  /// Erases the live lines.
  void clear();

 private:
  std::FILE* out_;
  bool live_;
  std::vector<std::string> drawn_;
};

}  // namespace tearless::harness
