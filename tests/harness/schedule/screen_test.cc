// What goes to a terminal while a sweep runs, byte by byte: live lines that are redrawn in place, and lines that stay.
#include "harness/schedule/screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "tests/support/paths.h"

namespace tearless::harness {
namespace {

/// A pseudo-terminal of some size, and what was written to it.
class Terminal {
 public:
  Terminal(unsigned short rows, unsigned short columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(master_);
    ::unlockpt(master_);
    out_ = ::fdopen(::open(::ptsname(master_), O_RDWR | O_NOCTTY), "w");
    const winsize size{rows, columns, 0, 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  ~Terminal() {
    std::fclose(out_);
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::FILE* out() const { return out_; }

  /// What came since the last call; a line ends with "\n".
  std::string read() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(master_, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
    std::erase(text, '\r');
    return text;
  }

 private:
  int master_;
  std::FILE* out_;
};

Progress running(const std::string& label, int64_t step) {
  Progress progress;
  progress.label = label;
  progress.step = step;
  progress.updates = 100;
  return progress;
}

// Up by so many lines, and all below is wiped; the terminal's own "\r" is left out, see read().
std::string back_over(int lines) { return "\033[" + std::to_string(lines) + "A\033[J"; }

TEST(Screen, RedrawsLiveLinesBelowThePermanentOnes) {
  const Terminal terminal(24, 80);
  const std::string a = progress_line(running("a", 1), 79) + "\n", b = progress_line(running("b", 2), 79) + "\n";
  {
    Screen screen(terminal.out());
    EXPECT_TRUE(screen.is_live());
    screen.print("begins");
    EXPECT_EQ(terminal.read(), "begins\n");
    screen.draw({running("a", 1), running("b", 2)}, "0/2 ended");
    EXPECT_EQ(terminal.read(), a + b + "0/2 ended\n");
    screen.draw({running("b", 2)}, "1/2 ended");
    EXPECT_EQ(terminal.read(), back_over(3) + b + "1/2 ended\n");
    screen.print("a  done");
    EXPECT_EQ(terminal.read(), back_over(2) + "a  done\n" + b + "1/2 ended\n");
    screen.clear();
    EXPECT_EQ(terminal.read(), back_over(2));
    screen.clear();
    EXPECT_EQ(terminal.read(), "");
    screen.draw({}, "2/2 ended");
    terminal.read();
  }
  EXPECT_EQ(terminal.read(), back_over(1)) << "it leaves no live line behind";
}

TEST(Screen, ShowsAsManyRunsAsThereAreRowsForAndCountsTheRest) {
  const Terminal terminal(5, 30);
  Screen screen(terminal.out());
  std::vector<Progress> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(running("run " + std::to_string(i), i));
  screen.draw(runs, "a summary that is longer than the terminal is wide");
  EXPECT_EQ(terminal.read(), progress_line(runs[0], 29) + "\n" + progress_line(runs[1], 29) + "\n" + "… and 2 more\n" +
                                 "a summary that is longer than\n");
  screen.draw({runs[0], runs[1]}, "short");
  EXPECT_EQ(terminal.read(),
            back_over(4) + progress_line(runs[0], 29) + "\n" + progress_line(runs[1], 29) + "\nshort\n");
}

TEST(Screen, IsNotLiveInAPipe) {
  const test::TempFolder folder;
  std::FILE* file = std::fopen((folder / "out").c_str(), "w");
  {
    Screen screen(file);
    EXPECT_FALSE(screen.is_live());
    screen.draw({running("a", 1)}, "0/1 ended");
    screen.print("a  done");
  }
  std::fclose(file);
  EXPECT_EQ(test::read_text(folder / "out"), "a  done\n");
}

TEST(Screen, EscapesTerminalControlCharacters) {
  const Terminal terminal(24, 80);
  Screen screen(terminal.out());
  screen.print("red \033[31m");
  screen.draw({running("\033[2J", 1)}, "\033]0;");
  EXPECT_EQ(terminal.read(), "red \\x1b[31m\n" + progress_line(running("\\x1b[2J", 1), 79) + "\n\\x1b]0;\n");
}

TEST(ProgressLine, ShowsWhatIsKnown) {
  Progress progress = running("layer_norm · pre · seed 1", 30);
  const std::string label = "layer_norm · pre · seed 1" + std::string(44 - 25, ' ');
  EXPECT_EQ(progress_line(progress, 200), label + "      30/100                  ETA -");
  progress.loss = 5.25;
  progress.tokens_per_second = 1234.4;
  progress.updates_per_second = 2;
  EXPECT_EQ(progress_line(progress, 200), label + "      30/100     loss 5.25    1234 tokens/s ETA 0:35");
  progress.tokens_per_second = std::nullopt;
  progress.dev_name = "dev.bleu";
  progress.dev_score = 7.5;
  progress.stopping = true;
  EXPECT_EQ(progress_line(progress, 200), label + "      30/100     loss 5.25    dev.bleu 7.5    2 updates/s stopping");
}

TEST(ProgressLine, ShortensALongLabelFirstAndThenTheNumbers) {
  const Progress progress = running(std::string(60, 'x'), 30);
  const std::string numbers = "     30/100                  ETA -";
  EXPECT_EQ(progress_line(progress, 200), std::string(44, 'x') + " " + numbers);
  EXPECT_EQ(progress_line(progress, numbers.size() + 12), std::string(11, 'x') + " " + numbers);
  EXPECT_EQ(progress_line(progress, numbers.size() + 11), std::string(10, 'x') + " " + numbers);
  EXPECT_EQ(progress_line(progress, 20), (std::string(10, 'x') + " " + numbers).substr(0, 20));
}

}  // namespace
}  // namespace tearless::harness
