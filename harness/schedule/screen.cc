#include "harness/schedule/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/utf8.h"

namespace tearless::harness {
namespace {

struct Size {
  size_t rows = 24, columns = 80;
};

Size size_of(std::FILE* terminal) {
  winsize size{};
  if (::ioctl(::fileno(terminal), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_row, size.ws_col};
}

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

std::string padded(const std::string& text, size_t columns) {
  const std::string shown = cut(text, columns);
  return shown + std::string(columns - characters(shown), ' ');
}

}  // namespace

std::string progress_line(const Progress& progress, size_t columns) {
  std::string numbers = fmt::format("{:>7}/{:<7}", progress.step, progress.updates);
  numbers += progress.loss ? fmt::format(" loss {:<7.4g}", *progress.loss) : std::string(13, ' ');
  if (progress.dev_score) numbers += fmt::format(" {} {:<6.4g}", progress.dev_name, *progress.dev_score);
  if (progress.tokens_per_second) {
    numbers += fmt::format(" {:.0f} tokens/s", *progress.tokens_per_second);
  } else if (progress.updates_per_second > 0) {
    numbers += fmt::format(" {:.3g} updates/s", progress.updates_per_second);
  }
  numbers += progress.stopping ? " stopping" : " ETA " + duration_text(progress.seconds_left());
  const size_t width = columns > characters(numbers) + 11 ? columns - characters(numbers) - 1 : 10;
  return cut(padded(printable(progress.label), std::min<size_t>(width, 44)) + " " + numbers, columns);
}

Screen::Screen(std::FILE* out) : out_(out), live_(::isatty(::fileno(out)) != 0) {}

Screen::~Screen() { clear(); }

void Screen::print(const std::string& line) {
  const std::vector<std::string> below = std::move(drawn_);
  drawn_ = below;
  clear();
  fmt::print(out_, "{}\n", printable(line));
  for (const std::string& live : below) fmt::print(out_, "{}\n", live);
  drawn_ = below;
  std::fflush(out_);
}

void Screen::draw(const std::vector<Progress>& running, const std::string& summary) {
  if (!live_) return;
  const Size size = size_of(out_);
  const size_t columns = size.columns - 1;  // a full line would wrap, and clear() would erase too few lines
  const size_t most = std::max<size_t>(size.rows, 4) - 3;
  clear();
  for (size_t i = 0; i < running.size() && i < most; ++i) drawn_.push_back(progress_line(running[i], columns));
  if (running.size() > most) drawn_.push_back(fmt::format("… and {} more", running.size() - most));
  drawn_.push_back(cut(printable(summary), columns));
  for (const std::string& line : drawn_) fmt::print(out_, "{}\n", line);
  std::fflush(out_);
}

void Screen::clear() {
  if (!drawn_.empty()) fmt::print(out_, "\033[{}A\r\033[J", drawn_.size());
  drawn_.clear();
  std::fflush(out_);
}

}  // namespace tearless::harness
