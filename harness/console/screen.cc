#include "harness/console/screen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "base/utf8.h"
#include "base/words.h"

namespace tearless::harness {
namespace {

// --- labels --------------------------------------------------------------------------------------------------------

constexpr std::string_view kSeparator = " · ";  // of label_of()
constexpr size_t kMinPart = 4;                  // columns that a part is shortened to
constexpr size_t kMinLabel = 16;                // columns of labels that other columns must leave

using Texts = std::vector<std::string>;

Texts parts_of(const std::string& label) {
  Texts parts;
  size_t begin = 0;
  for (size_t end; (end = label.find(kSeparator, begin)) != std::string::npos; begin = end + kSeparator.size()) {
    parts.push_back(label.substr(begin, end - begin));
  }
  parts.push_back(label.substr(begin));
  return parts;
}

std::string last_columns(const std::string& text, size_t columns) {
  return text.substr(cut_to_width(text, display_width(text) - columns).size());
}

/// The texts, each of at most `columns`: "…" replaces the middle of longer texts. Where two different
/// texts would become alike, another range than the middle is left out; if none keeps them apart, they stay as they
/// are.
Texts shortened(const Texts& texts, size_t columns) {
  const size_t different = std::set(texts.begin(), texts.end()).size();
  for (size_t i = 0; i < columns; ++i) {
    const size_t head = (columns / 2 + i) % columns;
    Texts shorter;
    for (const std::string& text : texts) {
      const bool fits = display_width(text) <= columns;
      shorter.push_back(fits ? text : cut_to_width(text, head) + "…" + last_columns(text, columns - 1 - head));
    }
    if (std::set(shorter.begin(), shorter.end()).size() == different) return shorter;
  }
  return texts;
}

size_t widest(const Texts& texts) {
  size_t most = 0;
  for (const std::string& text : texts) most = std::max(most, display_width(text));
  return most;
}

/// A part of the labels of all runs.
struct Part {
  std::string axis;  // "": not known
  Texts texts;       // one for each run
};

/// The parts of the labels that are not the same for all runs; of a single run all.
std::vector<Part> differing_parts(const std::vector<Progress>& running) {
  std::vector<Part> parts;
  for (const Progress& run : running) {
    const Texts of_run = parts_of(printable(run.label));
    if (parts.empty()) parts.resize(of_run.size());
    if (parts.size() != of_run.size()) {  // a separator within a part: labels cannot be compared part by part
      Texts labels;
      for (const Progress& whole : running) labels.push_back(printable(whole.label));
      return {{"", labels}};
    }
    for (size_t i = 0; i < parts.size(); ++i) parts[i].texts.push_back(of_run[i]);
  }
  const bool same_axes =
      std::all_of(running.begin(), running.end(), [&](const Progress& run) { return run.axes == running[0].axes; });
  if (const Texts axes = parts_of(printable(running.empty() ? "" : running[0].axes));
      same_axes && axes.size() == parts.size()) {
    for (size_t i = 0; i < parts.size(); ++i) parts[i].axis = axes[i];
  }
  if (running.size() > 1) {
    std::erase_if(parts, [](const Part& part) { return std::set(part.texts.begin(), part.texts.end()).size() == 1; });
  }
  return parts;
}

/// The names of the axes, or their last words, if one of the two fits into so many columns.
std::string heading_of(const std::vector<Part>& parts, size_t columns) {
  for (const bool whole : {true, false}) {
    std::string heading;
    for (const Part& part : parts) {
      const std::string name = whole ? part.axis : last_word(part.axis);
      if (!heading.empty()) heading += kSeparator;
      heading += name;
    }
    if (display_width(heading) <= columns) return heading;
  }
  return "";
}

Texts joined(const std::vector<Part>& parts, size_t runs) {
  Texts labels(runs);
  for (const Part& part : parts) {
    for (size_t run = 0; run < runs; ++run) {
      if (!labels[run].empty()) labels[run] += kSeparator;
      labels[run] += part.texts[run];
    }
  }
  return labels;
}

/// What tells the runs apart, shortened to `columns` if that is possible.
Texts short_labels(const std::vector<Part>& parts, size_t runs, size_t columns) {
  size_t longest = 0;
  for (const Part& part : parts) longest = std::max(longest, widest(part.texts));
  std::vector<Part> shorter = parts;
  for (size_t most = longest; widest(joined(shorter, runs)) > columns && most-- > kMinPart;) {
    for (size_t i = 0; i < parts.size(); ++i) {
      Texts texts = shortened(parts[i].texts, most);
      if (widest(texts) <= most) shorter[i].texts = std::move(texts);
    }
  }
  return joined(shorter, runs);
}

// --- columns -------------------------------------------------------------------------------------------------------

struct Column {
  std::string heading;
  Texts cells;  // one for each run
  bool right = true;

  size_t width() const { return std::max(display_width(heading), widest(cells)); }
};

size_t width_of(const std::vector<Column>& columns) {
  size_t width = 0;
  for (const Column& column : columns) width += column.width() + 2;
  return width;
}

std::string line_of(const std::vector<Column>& columns, const std::function<std::string(const Column&)>& cell_of) {
  std::string line;
  for (const Column& column : columns) {
    const std::string cell = cell_of(column);
    const std::string space(column.width() - display_width(cell), ' ');
    line += (line.empty() ? "" : "  ") + (column.right ? space + cell : cell + space);
  }
  return line.erase(line.find_last_not_of(' ') + 1);
}

// --- the terminal --------------------------------------------------------------------------------------------------

constexpr double kPlainSummaryEvery = 60;  // seconds, if the output is not a terminal
constexpr double kMaxRest = 1;             // seconds between two looks
constexpr double kRestPart = 0.05;         // of the time so far: a short sweep is not made longer by watching it

// While a frame is drawn, the cursor is hidden at the frame's beginning, so that all below it is the frame even after a
// resize that broke its lines. A line that is wider than display_width() says must not wrap: the way back would be
// longer.
constexpr const char* kBegin = "\033[?25l\033[?7l";
constexpr const char* kEnd = "\033[?7h";
// With a space first: where the whole screen is erased, tmux keeps it in its history.
constexpr const char* kErase = "\r \033[J\r\033[?7h\033[?25h";

constexpr int kLeaving[] = {SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

volatile std::sig_atomic_t g_interrupts = 0;
volatile std::sig_atomic_t g_terminal = -1;

// What is ignored stays so.
void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER;
  ::sigaction(signal, &action, &before);
  if (before.sa_handler == SIG_IGN) ::sigaction(signal, &before, nullptr);
}

// Erases the frame, then does what the signal does by default. After a stop the next look draws it again.
void leave_terminal(int signal) {
  [[maybe_unused]] const ssize_t written = ::write(g_terminal, kErase, std::strlen(kErase));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  handle(signal, leave_terminal);
}

}  // namespace

std::vector<std::string> progress_lines(const std::vector<Progress>& running, size_t columns) {
  const auto first_dev =
      std::find_if(running.begin(), running.end(), [](const Progress& run) { return run.dev_score; });
  const std::string dev_name = first_dev == running.end() ? "" : first_dev->dev_name;
  Column id{"run", {}, false}, update{"update", {}}, loss{"loss", {}}, dev{printable(dev_name), {}}, speed{"speed", {}},
      left{"ETA", {}};
  for (const Progress& run : running) {
    id.cells.push_back(run.id.substr(0, 8));
    update.cells.push_back(run.updates > 0 ? fmt::format("{}/{}", run.step, run.updates) : fmt::format("{}", run.step));
    loss.cells.push_back(run.loss ? fmt::format("{:.4g}", *run.loss) : "");
    dev.cells.push_back(run.dev_score && run.dev_name == dev_name ? fmt::format("{:.4g}", *run.dev_score) : "");
    speed.cells.push_back(speed_text({run}));
    left.cells.push_back(run.phase == Phase::kGranted  ? "granted"
                         : run.phase == Phase::kSilent ? "silent"
                         : run.stopping                ? "stopping"
                                                       : duration_text(run.seconds_left()));
  }
  const std::vector<Part> parts = differing_parts(running);
  const size_t wanted = std::min(widest(joined(parts, running.size())), kMinLabel);
  const auto has_cells = [](const Column& column) { return widest(column.cells) > 0; };
  std::vector<Column> table;
  Texts labels;
  size_t room = 0;
  for (const std::vector<Column>& choice : {std::vector{id, update, loss, dev, speed, left},
                                            {id, update, loss, speed, left},
                                            {id, update, loss, left},
                                            {id, update, left}}) {
    table.clear();
    std::copy_if(choice.begin(), choice.end(), std::back_inserter(table), has_cells);
    room = columns - std::min(columns, width_of(table));
    labels = short_labels(parts, running.size(), room);
    if (room >= wanted && widest(labels) <= room) break;
  }
  table.insert(table.begin() + (has_cells(id) ? 1 : 0), {heading_of(parts, room), labels, false});

  std::vector<std::string> lines = {
      fitted(line_of(table, [](const Column& column) { return column.heading; }), columns)};
  for (size_t run = 0; run < running.size(); ++run) {
    lines.push_back(fitted(line_of(table, [run](const Column& column) { return column.cells[run]; }), columns));
  }
  return lines;
}

TerminalSize terminal_size(std::FILE* terminal) {
  winsize size{};
  if (::ioctl(::fileno(terminal), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_row, size.ws_col};
}

bool is_live(std::FILE* out) {
  const char* type = std::getenv("TERM");
  return ::isatty(::fileno(out)) != 0 && type && std::string_view(type) != "dumb";
}

bool has_colour(std::FILE* out) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_live(out) && !(no_colour && *no_colour);
}

Frame frame_of(const std::vector<Progress>& running, size_t columns, const std::string& summary) {
  if (running.empty()) return {.summary = summary};
  Frame frame{.lines = progress_lines(running, columns), .summary = summary};
  frame.header = frame.lines[0];
  frame.lines.erase(frame.lines.begin());
  for (size_t i = 0; i < running.size(); ++i) {
    if (running[i].stopping) frame.marked.insert(i);
  }
  return frame;
}

Screen::Screen(std::FILE* out) : out_(out), live_(harness::is_live(out)), last_summary_(steady_seconds()) {
  g_interrupts = 0;
  std::signal(SIGINT, [](int) { g_interrupts = g_interrupts + 1; });
  if (!live_) return;
  g_terminal = ::fileno(out);
  std::signal(SIGWINCH, [](int) {});  // the default would not end a rest
  for (const int signal : kLeaving) handle(signal, leave_terminal);
}

Screen::~Screen() {
  draw({});
  for (const int signal : kLeaving) handle(signal, SIG_DFL);
  for (const int signal : {SIGINT, SIGWINCH}) std::signal(signal, SIG_DFL);
}

int Screen::interrupts() { return g_interrupts; }

void Screen::print(const std::string& line) { redraw(printable(line) + "\n"); }

void Screen::draw(Frame frame) {
  if (live_) {
    frame_ = std::move(frame);
    redraw("");
  } else if (!frame.summary.empty() && steady_seconds() - last_summary_ > kPlainSummaryEvery) {
    print(frame.summary);
    last_summary_ = steady_seconds();
  }
}

void Screen::follow(const std::function<bool()>& look) {
  const double began = steady_seconds();
  while (look()) {
    const double rest = std::min(kMaxRest, kRestPart * (steady_seconds() - began));
    ::poll(nullptr, 0, 1 + static_cast<int>(1000 * rest));
  }
  draw({});
}

void Screen::redraw(const std::string& above) {
  const std::string text = (drawn_ ? kErase : "") + above + text_of_frame();
  drawn_ = !frame_.lines.empty() || !frame_.summary.empty();
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

// Ends with the cursor at its beginning.
std::string Screen::text_of_frame() const {
  const auto [rows, columns] = terminal_size(out_);
  std::vector<std::string> drawn;
  const auto add = [&, columns = columns, colour = has_colour(out_)](const char* style, const std::string& line) {
    const std::string text = fitted(printable(line), columns);
    drawn.push_back(colour && *style ? fmt::format("\033[{}m{}\033[0m", style, text) : text);
  };
  const size_t header = frame_.header.empty() ? 0 : 1, summary = frame_.summary.empty() ? 0 : 1;
  const bool fits = header + frame_.lines.size() + summary <= rows;
  const size_t shown = fits ? frame_.lines.size() : rows - std::min(rows, header + 1 + summary);
  if (header > 0 && shown > 0) add("2", frame_.header);
  for (size_t i = 0; i < shown; ++i) add(frame_.marked.contains(i) ? "33" : "", frame_.lines[i]);
  if (!fits && summary < rows) add("", fmt::format("… and {} more{}", frame_.lines.size() - shown, frame_.more));
  if (summary > 0) add("1", frame_.summary);
  if (drawn.empty()) return "";
  const std::string up = drawn.size() > 1 ? fmt::format("\033[{}A", drawn.size() - 1) : "";
  return fmt::format("{}{}{}{}\r", kBegin, fmt::join(drawn, "\n"), kEnd, up);
}

}  // namespace tearless::harness
