#include "harness/report/text_page.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/words.h"

namespace tearless::harness {
namespace {

constexpr std::string_view kOpening = "<!--", kClosing = "-->";

/// The backticks or tildes that begin or end a block of code on this line; "": none do.
std::string_view fence_of(std::string_view line) {
  constexpr size_t kMaxBlanks = 3, kMinLength = 3;
  const size_t at = line.find_first_not_of(' ');
  if (at == std::string_view::npos || at > kMaxBlanks || (line[at] != '`' && line[at] != '~')) return {};
  const size_t end = std::min(line.find_first_not_of(line[at], at), line.size());
  const bool is_code_in_a_line = line[at] == '`' && line.find('`', end) != std::string_view::npos;
  return end - at < kMinLength || is_code_in_a_line ? std::string_view() : line.substr(at, end - at);
}

bool ends(std::string_view fence, std::string_view line) {
  const std::string_view own = fence_of(line);
  return !own.empty() && own.front() == fence.front() && own.size() >= fence.size() &&
         line.find_first_not_of(" \t\r", static_cast<size_t>(own.end() - line.begin())) == std::string_view::npos;
}

/// Where the code ends that begins with the backticks at `at`; their own end if it is not on this line.
size_t end_of_code(std::string_view text, size_t at) {
  const auto end_of_run = [&](size_t from) { return std::min(text.find_first_not_of('`', from), text.size()); };
  const size_t begin = end_of_run(at), end_of_line = std::min(text.find('\n', begin), text.size());
  for (size_t next = text.find('`', begin); next < end_of_line; next = text.find('`', end_of_run(next))) {
    if (end_of_run(next) - next == begin - at) return end_of_run(next);
  }
  return begin;
}

/// A comment of any kind.
struct Comment {
  size_t begin, end;
  std::string_view inside;
};

/// The comments of a page that are not in code, in their order. One that does not end has no bytes inside and no end.
std::vector<Comment> comments_in(std::string_view text) {
  std::vector<Comment> comments;
  std::string_view fence;
  for (size_t at = 0; at < text.size();) {
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    const size_t end_of_line = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end_of_line - at);
    if (begins_line && !fence.empty()) {
      if (ends(fence, line)) fence = {};
      at = end_of_line + 1;
    } else if (begins_line && !fence_of(line).empty()) {
      fence = fence_of(line);
      at = end_of_line + 1;
    } else if (text[at] == '\\') {
      at += 2;  // what it escapes begins neither code nor a comment
    } else if (text[at] == '`') {
      at = end_of_code(text, at);
    } else if (text.substr(at).starts_with(kOpening)) {
      const size_t inside = at + kOpening.size(), close = text.find(kClosing, inside);
      if (close == std::string_view::npos) {
        comments.push_back({at, std::string_view::npos, text.substr(inside)});
        break;
      }
      comments.push_back({at, close + kClosing.size(), text.substr(inside, close - inside)});
      at = comments.back().end;
    } else {
      ++at;
    }
  }
  return comments;
}

/// The words of a comment of tearless; nullopt for any other comment.
std::optional<std::string_view> command_in(const Comment& comment) {
  const std::vector<std::string_view> words = split_words(comment.inside);
  if (words.empty() || words.front() != "tearless") return std::nullopt;
  return comment.inside.substr(static_cast<size_t>(words.front().end() - comment.inside.begin()));
}

bool is_end(const Comment& comment) { return split_words(comment.inside) == std::vector<std::string_view>{"end"}; }

}  // namespace

TextPage::TextPage(std::string bytes, const std::string& name) : bytes_(std::move(bytes)), name_(name) {
  const auto line_of = [&](size_t at) {
    return 1 + static_cast<size_t>(std::count(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(at), '\n'));
  };
  bool is_open = false;
  for (const Comment& comment : comments_in(bytes_)) {
    const std::optional<std::string_view> command = command_in(comment);
    if (!command && !is_end(comment)) continue;
    const size_t line = line_of(comment.begin);
    if (comment.end == std::string_view::npos) fail("{}:{}: the comment has no -->", name, line);
    if (!command) {
      if (!is_open) fail("{}:{}: {} ends no place: none begins before it", name, line, kEndOfPlace);
      places_.back().end = comment.begin;
      is_open = false;
      continue;
    }
    if (is_open) {
      fail("{}:{}: a place begins in another, that of line {}, which needs its {} before", name, line,
           places_.back().line, kEndOfPlace);
    }
    const size_t before = bytes_.find_last_not_of(" \t", comment.begin > 0 ? comment.begin - 1 : 0);
    Place& place = places_.emplace_back(
        Place{.line = line,
              .begins_line = comment.begin == 0 || before == std::string::npos || bytes_[before] == '\n',
              .begin = comment.end,
              .end = comment.end});
    try {
      place.words = words_of_shell_line(*command);
    } catch (const UserError& error) {
      fail("{}:{}: {}", name, line, error.what());
    }
    if (place.words.empty()) fail("{}:{}: the comment has no command behind the word tearless", name, line);
    is_open = place.has_text = !place.words.front().starts_with('-');
  }
  if (is_open) fail("{}:{}: the place has no end: put {} behind it", name, places_.back().line, kEndOfPlace);
}

std::string TextPage::with(const std::vector<std::string>& texts) const {
  require(texts.size() == places_.size(), "a page needs a text for each place");
  const auto with_first = [&](size_t count) {
    std::string page;
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      page += bytes_.substr(at, places_[i].begin - at);
      const bool has_returns = bytes_.compare(places_[i].begin, 2, "\r\n") == 0;
      for (const char c : (texts[i].ends_with('\n') ? "\n" : "") + texts[i]) {
        if (c == '\n' && has_returns) page += '\r';
        page += c;
      }
      at = places_[i].end;
    }
    return page + bytes_.substr(at);
  };
  const auto has_places = [&](const std::string& page) {
    try {
      return std::ranges::equal(TextPage(page, name_).places_, places_, {}, &Place::words, &Place::words);
    } catch (const UserError&) {
      return false;
    }
  };
  std::string page = with_first(texts.size());
  for (size_t i = 0; i < texts.size() && !has_places(page); ++i) {
    if (has_places(with_first(i + 1))) continue;
    fail(
        "{}:{}: with the text of this place the page would have other places: it has a comment or code that does not "
        "end in it",
        name_, places_[i].line);
  }
  return page;
}

std::string comment_of(const std::vector<std::string>& words) {
  std::string text = shell_words(words);
  // In quotes, as every word with ">" is: what would end the comment is taken apart.
  for (size_t at = text.find(kClosing); at != std::string::npos; at = text.find(kClosing, at))
    text.replace(at, kClosing.size(), R"(--'">"')");
  return fmt::format("<!-- tearless {} -->", text);
}

}  // namespace tearless::harness
