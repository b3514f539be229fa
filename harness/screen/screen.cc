#include "harness/screen/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>

#include "base/utf8.h"

namespace tearless::harness {
namespace {

// The first `columns` code points of a UTF-8 text.
std::string cut(const std::string& text, size_t columns) {
  size_t seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// --- labels --------------------------------------------------------------------------------------------------------

constexpr std::string_view kSeparator = " · ";  // of label_of()
constexpr size_t kMinPart = 4;                  // characters that a part is shortened to
constexpr size_t kMinLabel = 16;                // characters of labels that other columns must leave

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

std::string last_characters(const std::string& text, size_t count) {
  return text.substr(cut(text, characters(text) - count).size());
}

/// The texts with at most `columns` characters: "…" replaces the middle of longer texts. Where two different
/// texts would become alike, another range than the middle is left out; if none keeps them apart, they stay as they
/// are.
Texts shortened(const Texts& texts, size_t columns) {
  const size_t different = std::set(texts.begin(), texts.end()).size();
  for (size_t i = 0; i < columns; ++i) {
    const size_t head = (columns / 2 + i) % columns;
    Texts shorter;
    for (const std::string& text : texts) {
      const bool fits = characters(text) <= columns;
      shorter.push_back(fits ? text : cut(text, head) + "…" + last_characters(text, columns - 1 - head));
    }
    if (std::set(shorter.begin(), shorter.end()).size() == different) return shorter;
  }
  return texts;
}

size_t widest(const Texts& texts) {
  size_t most = 0;
  for (const std::string& text : texts) most = std::max(most, characters(text));
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
      const std::string name = whole ? part.axis : part.axis.substr(part.axis.rfind('.') + 1);
      if (!heading.empty()) heading += kSeparator;
      heading += name;
    }
    if (characters(heading) <= columns) return heading;
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

/// What tells the runs apart, shortened to `columns` characters if that is possible.
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

  size_t width() const { return std::max(characters(heading), widest(cells)); }
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
    const std::string space(column.width() - characters(cell), ' ');
    line += (line.empty() ? "" : "  ") + (column.right ? space + cell : cell + space);
  }
  return line.erase(line.find_last_not_of(' ') + 1);
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
    left.cells.push_back(run.stopping ? "stopping" : duration_text(run.seconds_left()));
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

  std::vector<std::string> lines = {cut(line_of(table, [](const Column& column) { return column.heading; }), columns)};
  for (size_t run = 0; run < running.size(); ++run) {
    lines.push_back(cut(line_of(table, [run](const Column& column) { return column.cells[run]; }), columns));
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

Screen::Screen(std::FILE* out) : out_(out), live_(harness::is_live(out)), colour_(has_colour(out)) {}

Screen::~Screen() { clear(); }

void Screen::write(const std::string& text) const { std::fwrite(text.data(), 1, text.size(), out_); }

std::string Screen::coloured(const char* code, const std::string& line) const {
  return colour_ ? fmt::format("\033[{}m{}\033[0m", code, line) : line;
}

void Screen::print(const std::string& line) {
  const std::vector<std::string> below = std::move(drawn_);
  drawn_ = below;
  clear();
  write(printable(line) + "\n");
  for (const std::string& live : below) write(live + "\n");
  drawn_ = below;
  std::fflush(out_);
}

void Screen::draw(const std::vector<Progress>& running, const std::string& summary) {
  if (!live_) return;
  const TerminalSize size = terminal_size(out_);
  const size_t columns = size.columns - 1;  // a full line would wrap, and clear() would erase too few lines
  const size_t most = std::max<size_t>(size.rows, 5) - 4;
  clear();
  const std::vector<Progress> shown(running.begin(),
                                    running.begin() + static_cast<ptrdiff_t>(std::min(most, running.size())));
  if (!shown.empty()) {
    const std::vector<std::string> lines = progress_lines(shown, columns);
    drawn_.push_back(coloured("2", lines[0]));
    for (size_t i = 0; i < shown.size(); ++i) {
      drawn_.push_back(shown[i].stopping ? coloured("33", lines[i + 1]) : lines[i + 1]);
    }
  }
  if (running.size() > most) drawn_.push_back(fmt::format("… and {} more", running.size() - most));
  drawn_.push_back(coloured("1", cut(printable(summary), columns)));
  for (const std::string& line : drawn_) write(line + "\n");
  std::fflush(out_);
}

void Screen::clear() {
  if (!drawn_.empty()) write(fmt::format("\033[{}A\r\033[J", drawn_.size()));
  drawn_.clear();
  std::fflush(out_);
}

}  // namespace tearless::harness
