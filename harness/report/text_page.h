// A page of Markdown with places for what `tearless` prints. A place is an HTML comment with the words of a command,
// what that printed, and a comment that ends it:
//
//   <!-- tearless table ada_small --layout ../grids/ada_small.toml -->
//   | Norm | RT, test | …
//   <!-- end -->
//
// A comment whose words begin with an option, `<!-- tearless --workspace joey.tar.gz -->`, has no end: it is about the
// places after it. Comments in blocks of code between fences, in code between backticks on one line, and behind a
// backslash, are text as all else is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tearless::harness {

class TextPage {
 public:
  /// A comment of tearless.
  struct Place {
    size_t line = 0;  // that it begins on, from 1
    std::vector<std::string> words = {};
    bool has_text = false;      // false: an option for the places after it
    bool begins_line = false;   // nothing but blanks is before it
    size_t begin = 0, end = 0;  // of the bytes between its comment and that which ends it
  };

  /// `name`: the file, for messages. UserError that names file and line for a place without an end, an end without a
  /// place, a place in another, and a comment or a quote in one that does not end.
  TextPage(std::string bytes, const std::string& name);

  /// In the order of the page.
  const std::vector<Place>& places() const { return places_; }

  /// The page with a text in each place, and every other byte as it is. A text that ends in a line break stands on
  /// lines of its own, with the line breaks of its comment. UserError that names the line of a place with whose text
  /// the page would have other places, such as a text that has a comment that ends it. REQUIRES: one text for each
  /// place, "" where none is.
  std::string with(const std::vector<std::string>& texts) const;

 private:
  std::string bytes_, name_;
  std::vector<Place> places_;
};

/// The comment of a place with these words.
std::string comment_of(const std::vector<std::string>& words);
/// The comment that ends a place.
inline constexpr const char* kEndOfPlace = "<!-- end -->";

}  // namespace tearless::harness
