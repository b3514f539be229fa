// What a person sees while a sweep runs: on a terminal one live line per running job and a summary line, redrawn in
// place; in a pipe plain lines only.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "harness/schedule/progress.h"

namespace tearless::harness {

/// One running job in at most `columns` characters.
std::string progress_line(const Progress& progress, size_t columns);

class Screen {
 public:
  /// Borrows `out`; live where that is a terminal.
  explicit Screen(std::FILE* out);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool is_live() const { return live_; }

  /// A line that stays, above the live ones.
  void print(const std::string& line);

  /// Replaces the live lines. In a pipe: nothing.
  void draw(const std::vector<Progress>& running, const std::string& summary);

  /// Takes the live lines away.
  void clear();

 private:
  std::FILE* out_;
  bool live_;
  std::vector<std::string> drawn_;
};

}  // namespace tearless::harness
