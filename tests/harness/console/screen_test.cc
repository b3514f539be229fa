// What goes to a terminal while something changes, byte by byte: a frame that is redrawn in place, and lines that stay.
#include "harness/console/screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <regex>

#include "base/utf8.h"
#include "tests/support/paths.h"

namespace tearless::harness::screen_test {
namespace {

/// A pseudo-terminal of some size, and what was written to it.
class Terminal {
 public:
  Terminal(unsigned short rows, unsigned short columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::setenv("TERM", "xterm", 1);
    ::grantpt(master_);
    ::unlockpt(master_);
    out_ = ::fdopen(::open(::ptsname(master_), O_RDWR | O_NOCTTY), "w");
    resize(rows, columns);
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  ~Terminal() {
    std::fclose(out_);
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::FILE* out() const { return out_; }

  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{rows, columns, 0, 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
  }

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

/// The header and the lines of these runs as text.
std::string lines_of(const std::vector<Progress>& runs, size_t columns) {
  std::string text;
  for (const std::string& line : progress_lines(runs, columns)) text += line + "\n";
  return text;
}

/// What goes to a terminal, without colour.
class PlainScreen : public testing::Test {
 protected:
  PlainScreen() { ::setenv("NO_COLOR", "1", 1); }
};

// The terminal's own "\r" is left out, see read().
const std::string kErased = " \033[J\033[?7h\033[?25h";

// Lines, each with "\n", as a frame.
std::string framed(std::string lines) {
  lines.pop_back();
  const auto up = std::count(lines.begin(), lines.end(), '\n');
  return "\033[?25l\033[?7l" + lines + "\033[?7h" + (up > 0 ? "\033[" + std::to_string(up) + "A" : "");
}

TEST_F(PlainScreen, RedrawsItsFrameBelowThePermanentLines) {
  const Terminal terminal(24, 80);
  const std::string both = lines_of({running("a", 1), running("b", 2)}, 80), b = lines_of({running("b", 2)}, 80);
  {
    Screen screen(terminal.out());
    EXPECT_TRUE(screen.is_live());
    screen.print("begins");
    EXPECT_EQ(terminal.read(), "begins\n");
    screen.draw(frame_of({running("a", 1), running("b", 2)}, 80, "0/2 ended"));
    EXPECT_EQ(terminal.read(), framed(both + "0/2 ended\n"));
    screen.draw(frame_of({running("b", 2)}, 80, "1/2 ended"));
    EXPECT_EQ(terminal.read(), kErased + framed(b + "1/2 ended\n"));
    screen.print("a  done");
    EXPECT_EQ(terminal.read(), kErased + "a  done\n" + framed(b + "1/2 ended\n"));
    screen.draw({});
    EXPECT_EQ(terminal.read(), kErased);
    screen.draw({});
    EXPECT_EQ(terminal.read(), "");
    screen.draw({.summary = "2/2 ended"});
    EXPECT_EQ(terminal.read(), framed("2/2 ended\n"));
  }
  EXPECT_EQ(terminal.read(), kErased) << "it leaves no frame behind";
}

TEST_F(PlainScreen, ShowsWhatThereIsRoomForAndCountsTheRest) {
  const Terminal terminal(5, 30);
  Screen screen(terminal.out());
  const auto drawn = [&](const Frame& frame) {
    screen.draw(frame);
    const std::string text = terminal.read();
    return text.substr(std::min(text.find("\033[?25l"), text.size()));
  };
  std::vector<Progress> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(running("run " + std::to_string(i), i));
  const Frame of_runs = frame_of(runs, 30, "a summary that is longer than the terminal is wide");
  const std::string summary = "a summary that is longer than…\n";
  EXPECT_EQ(drawn(of_runs), framed(lines_of({runs[0], runs[1]}, 30) + "… and 2 more\n" + summary));
  terminal.resize(6, 30);
  EXPECT_EQ(drawn(of_runs), framed(lines_of(runs, 30) + summary));
  terminal.resize(4, 30);
  EXPECT_EQ(drawn(of_runs), framed(lines_of({runs[0]}, 30) + "… and 3 more\n" + summary));
  terminal.resize(3, 30);
  EXPECT_EQ(drawn(of_runs), framed("… and 4 more\n" + summary)) << "no header without a line";
  terminal.resize(1, 30);
  EXPECT_EQ(drawn(of_runs), framed(summary));
  const Frame of_text{.lines = {"one", "two", "three"}, .more = " lines: elsewhere"};
  EXPECT_EQ(drawn(of_text), framed("… and 3 more lines: elsewhere\n"));
  terminal.resize(2, 30);
  EXPECT_EQ(drawn(of_text), framed("one\n… and 2 more lines: elsewhere\n"));
  terminal.resize(3, 4);
  EXPECT_EQ(drawn(of_text), framed("one\ntwo\nthr…\n"));
}

TEST_F(PlainScreen, IsLaidOutAnewWhenALineIsPrintedAfterAResize) {
  const Terminal terminal(24, 80);
  Screen screen(terminal.out());
  screen.draw({.lines = {"one", "two", "日本語"}});
  terminal.read();
  terminal.resize(3, 5);
  screen.print("a  done");
  EXPECT_EQ(terminal.read(), kErased + "a  done\n" + framed("one\ntwo\n日本…\n"));
}

TEST_F(PlainScreen, FollowsUntilTheLookEndsItAndCountsCtrlC) {
  const Terminal terminal(24, 80);
  Screen screen(terminal.out());
  screen.follow([&] {
    screen.draw({.summary = std::to_string(screen.interrupts())});
    ::raise(SIGINT);
    return screen.interrupts() < 2;
  });
  EXPECT_EQ(terminal.read(), framed("0\n") + kErased + framed("1\n") + kErased);
  EXPECT_EQ(Screen(terminal.out()).interrupts(), 0) << "another display";
}

// So does a terminal that is closed, or where Ctrl-\ is typed.
TEST_F(PlainScreen, LeavesTheTerminalAsItWasWhenItIsTerminated) {
  const Terminal terminal(24, 80);
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    EXPECT_EXIT(
        {
          Screen screen(terminal.out());
          screen.draw({.lines = {"one", "two"}});
          ::raise(signal);
          ::_exit(0);
        },
        testing::KilledBySignal(signal), "");
    EXPECT_EQ(terminal.read(), framed("one\ntwo\n") + kErased);
  }
}

TEST_F(PlainScreen, IsNotLiveInAPipe) {
  const test::TempFolder folder;
  std::FILE* file = std::fopen((folder / "out").c_str(), "w");
  {
    Screen screen(file);
    EXPECT_FALSE(screen.is_live());
    screen.draw(frame_of({running("a", 1)}, 80, "0/1 ended"));
    screen.print("a  done");
  }
  std::fclose(file);
  EXPECT_EQ(test::read_text(folder / "out"), "a  done\n");
}

TEST_F(PlainScreen, EscapesTerminalControlCharacters) {
  const Terminal terminal(24, 80);
  Screen screen(terminal.out());
  screen.print("red \033[31m");
  screen.draw(frame_of({running("\033[2J", 1)}, 80, "\033]0;"));
  EXPECT_EQ(terminal.read(), "red \\x1b[31m\n" + framed(lines_of({running("\\x1b[2J", 1)}, 80) + "\\x1b]0;\n"));
}

using Lines = std::vector<std::string>;

Progress known(const std::string& id, const std::string& label) {
  Progress progress = running(label, 30);
  progress.id = id;
  progress.loss = 5.25;
  progress.dev_name = "dev.bleu";
  progress.dev_score = 7.5;
  progress.updates_per_second = 2;
  return progress;
}

TEST(ProgressLines, ShowWhatIsKnown) {
  EXPECT_EQ(progress_lines({running("pre · seed 1", 30)}, 100),
            (Lines{"              update  ETA", "pre · seed 1  30/100    -"}));
  Progress one = known("0123456789abcdef", "pre · seed 1"), other = known("fedcba9876543210", "post · seed 1");
  one.tokens_per_second = 1234.4;
  other.stopping = true;
  other.dev_score = std::nullopt;
  EXPECT_EQ(progress_lines({one, other}, 100),
            (Lines{"run             update  loss  dev.bleu          speed       ETA",
                   "01234567  pre   30/100  5.25       7.5  1234 tokens/s      0:35",
                   "fedcba98  post  30/100  5.25              2 updates/s  stopping"}));
}

TEST(ProgressLines, LeaveOutWhatAllRunsShareAndNothingOfASingleRun) {
  const auto labels = [](const Lines& texts) {
    std::vector<Progress> runs;
    for (const std::string& text : texts) runs.push_back(running(text, 1));
    Lines lines = progress_lines(runs, 100);
    lines.erase(lines.begin());
    for (std::string& line : lines) line = line.substr(0, line.find("  "));
    return lines;
  };
  EXPECT_EQ(labels({"a · x · seed 1"}), (Lines{"a · x · seed 1"}));
  EXPECT_EQ(labels({"a · x · seed 1", "a · y · seed 1"}), (Lines{"x", "y"}));
  EXPECT_EQ(labels({"a · x · seed 1", "b · x · seed 2", "a · x · seed 2"}),
            (Lines{"a · seed 1", "b · seed 2", "a · seed 2"}));
  EXPECT_EQ(labels({"a · x · seed 1", "a · x · y · seed 1"}), (Lines{"a · x · seed 1", "a · x · y · seed 1"}))
      << "a value with a separator in it";
}

TEST(ProgressLines, NameTheAxesThatAreShownAsThereIsRoom) {
  const auto heading = [](const std::vector<Progress>& runs, size_t columns) {
    const std::string line = progress_lines(runs, columns)[0];
    return line.substr(0, line.find("  "));
  };
  const auto at = [](const std::string& label, const std::string& axes) {
    Progress progress = running(label, 1);
    progress.axes = axes;
    return progress;
  };
  const std::string axes = "task · model.norm.kind · seed";
  const Progress one = at("RT · layer_norm · seed 1", axes), other = at("RT · ada_norm · seed 2", axes);
  EXPECT_EQ(heading({one}, 100), axes);
  EXPECT_EQ(heading({one, other}, 100), "model.norm.kind · seed") << "the task is the same";
  EXPECT_EQ(heading({one, other}, 22 + 13), "model.norm.kind · seed");
  EXPECT_EQ(heading({one, other}, 21 + 13), "kind · seed");
  EXPECT_EQ(heading({at("a", "norm"), at("b", "norm")}, 4 + 13), "norm");
  EXPECT_EQ(heading({at("a", "norm"), at("b", "norm")}, 3 + 13), "") << "a name is not cut";
  EXPECT_EQ(heading({one, at("RT · ada_norm · seed 2", "task · norm · seed")}, 100), "") << "of two grids";
  EXPECT_EQ(heading({at("a · b · seed 1", "axis · seed")}, 100), "") << "a value with a separator in it";
}

TEST(ProgressLines, ShortenTheMiddleOfLabelsButKeepRunsApart) {
  const auto labels = [](const std::string& one, const std::string& other, size_t columns) {
    const Lines lines = progress_lines({running(one, 1), running(other, 1)}, columns);
    return Lines{lines[1].substr(0, lines[1].find("  ")), lines[2].substr(0, lines[2].find("  "))};
  };
  const std::string numbers = "  1/100    -";
  const std::string long_x = "abcdefghijklm-X", long_y = "abcdefghijklm-Y", in_middle = "abcXdefghijklmno";
  EXPECT_EQ(labels(long_x, long_y, 15 + 13), (Lines{long_x, long_y})) << "there is room";
  EXPECT_EQ(labels(long_x + "·é", long_y + "·é", 9 + 13), (Lines{"abcd…-X·é", "abcd…-Y·é"}));
  EXPECT_EQ(labels("abXdefghijklmno", "abYdefghijklmno", 6 + 13), (Lines{"abX…no", "abY…no"}));
  EXPECT_EQ(labels(in_middle, "abcYdefghijklmno", 6 + 13), (Lines{"abcX…o", "abcY…o"})) << "the middle would hide it";
}

TEST(ProgressLines, FitTheirTerminalAndLeaveOutTheLeastImportantColumnsFirst) {
  const std::vector<Progress> runs = {known("0123456789abcdef", "layer_norm_of_all · seed 1"),
                                      known("fedcba9876543210", "scale_norm_of_all · seed 2")};
  const auto heading = [&](size_t columns) {
    const Lines lines = progress_lines(runs, columns);
    for (const std::string& line : lines) {
      EXPECT_LE(display_width(line), columns) << line;
    }
    EXPECT_NE(lines[1].substr(10), lines[2].substr(10)) << columns;
    return std::regex_replace(lines[0], std::regex(" +"), " ");
  };
  EXPECT_EQ(heading(139), "run update loss dev.bleu speed ETA");
  EXPECT_EQ(heading(79), "run update loss dev.bleu speed ETA");
  EXPECT_EQ(heading(65), "run update loss speed ETA");
  EXPECT_EQ(heading(50), "run update loss ETA");
  EXPECT_EQ(heading(40), "run update ETA");
  for (size_t columns = 20; columns < 140; ++columns) heading(columns);
}

TEST(ProgressLines, LeaveOutAColumnWhereLabelsCannotBeShortened) {
  const std::string begin = "abcdefghijklmnop", end = "abcdefghijklmnopqr";
  const std::vector<Progress> runs = {known("0123456789abcdef", begin + "X" + end),
                                      known("fedcba9876543210", begin + "Y" + end)};
  for (size_t columns = 46; columns < 120; ++columns) {
    const Lines lines = progress_lines(runs, columns);
    EXPECT_TRUE(lines[1].ends_with("0:35")) << lines[1];
    EXPECT_NE(lines[1].substr(10), lines[2].substr(10)) << columns;
  }
}

TEST(Screen, HasColourUnlessTheUserWantsNone) {
  const auto drawn = [](const char* no_colour) {
    ::setenv("NO_COLOR", no_colour, 1);
    const Terminal terminal(24, 80);
    Screen screen(terminal.out());
    Progress stopping = running("b", 2);
    stopping.stopping = true;
    screen.draw(frame_of({running("a", 1), stopping}, 80, "0/2 ended"));
    return terminal.read();
  };
  const Lines lines = [] {
    Progress stopping = running("b", 2);
    stopping.stopping = true;
    return progress_lines({running("a", 1), stopping}, 80);
  }();
  EXPECT_EQ(drawn(""), framed("\033[2m" + lines[0] + "\033[0m\n" + lines[1] + "\n\033[33m" + lines[2] +
                              "\033[0m\n\033[1m0/2 ended\033[0m\n"));
  EXPECT_EQ(drawn("1"), framed(lines[0] + "\n" + lines[1] + "\n" + lines[2] + "\n0/2 ended\n"));
}

TEST(Screen, IsNotLiveOnATerminalThatCannotMoveItsCursor) {
  const Terminal terminal(24, 80);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Screen(terminal.out()).is_live());
  ::unsetenv("TERM");
  EXPECT_FALSE(Screen(terminal.out()).is_live());
}

TEST(Screen, GoesOnWhenItsTerminalIsGone) {
  std::FILE* full = std::fopen("/dev/full", "w");
  {
    Screen screen(full);
    for (int i = 0; i < 10000; ++i) EXPECT_NO_THROW(screen.print("a  done"));
  }
  std::fclose(full);
}

}  // namespace
}  // namespace tearless::harness::screen_test
