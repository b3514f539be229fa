// Splitting text into lines and lines into words (as multi-bleu.perl does); counts and shell words for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

/// Splits at '\n' only: CR, U+0085 and U+2028 are text. The last line need not end with '\n'. The views point into
/// `text`.
std::vector<std::string_view> split_lines(std::string_view text);

/// Splits at ASCII white space (space, \t, \n, \v, \f, \r) only: U+00A0, U+0085 and U+2028 are parts of words. The
/// views point into `line`.
std::vector<std::string_view> split_words(std::string_view line);

/// Without the spaces before and after it.
std::string_view trimmed(std::string_view text);

/// With small letters in place of ASCII's capital ones.
std::string lowered(std::string text);

/// The items of a list such as "a, b", which a comma and a space separate; of "" one that is empty.
std::vector<std::string> list_items(std::string_view list);

/// Whether it may be a part of names of scores, files and settings: ASCII letters, digits, '_' and '-', and not empty.
bool is_plain_name(std::string_view name);

/// The text as one word of a shell's command line, quoted if it must be.
std::string shell_word(std::string_view text);

/// Several of them, with spaces between them.
std::string shell_words(const std::vector<std::string>& words);
/// The words of a line that shell_words() wrote, or a person with a shell's quotes and backslashes; nothing else that a
/// shell knows means anything. UserError for a quote without the other one.
std::vector<std::string> words_of_shell_line(std::string_view line);
/// " --set a=1 --set b=2" for the option "--set" with these values, each as a shell takes it.
std::string option_words(std::string_view option, const std::vector<std::string>& values);

/// The first of them, `most` at most, with `between` between them: "a, b and 3 more".
std::string some_of(const std::vector<std::string>& texts, size_t most, std::string_view between = ", ");

/// What stands behind the last point of a name: "kind" of "model.norm.kind".
std::string last_word(std::string_view dotted);

/// "1 run", "2 runs".
std::string counted(int64_t count, std::string_view noun);

/// "950", "12k", "1.2M", rounded. REQUIRES: n >= 0.
std::string short_count(int64_t n);

/// "950 bytes", "12 kB", "1.2 GB", rounded. REQUIRES: bytes >= 0.
std::string bytes_text(int64_t bytes);

}  // namespace tearless
