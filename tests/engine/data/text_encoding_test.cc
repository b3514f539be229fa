// Decoding and lower-casing, character by character.
#include "engine/data/text_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace tearless::engine::text_encoding_test {
namespace {

std::string error_of(std::string_view line, TextEncoding encoding) {
  return test::error_of([&] { to_utf8(line, encoding, "a.txt:7"); });
}

/// The UTF-8 of a code point below U+0800.
std::string utf8(unsigned point) {
  if (point < 0x80) return {static_cast<char>(point)};
  return {static_cast<char>(0xC0 + point / 64), static_cast<char>(0x80 + point % 64)};
}

TEST(TextEncoding, Windows1252IsDecodedAsPythonDecodesIt) {
  std::string bytes;
  for (int byte = 0x80; byte < 0x100; ++byte) {
    if (byte != 0x81 && byte != 0x8d && byte != 0x8f && byte != 0x90 && byte != 0x9d) bytes += static_cast<char>(byte);
  }
  EXPECT_EQ(to_utf8(bytes, TextEncoding::kWindows1252, ""),
            "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¸¹º»¼½¾¿"
            "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ");
  std::string ascii;
  for (int byte = 0; byte < 0x80; ++byte) ascii += static_cast<char>(byte);
  EXPECT_EQ(to_utf8(ascii, TextEncoding::kWindows1252, ""), ascii);
}

TEST(TextEncoding, TheFiveBytesThatWindows1252DoesNotDefineAreNamed) {
  for (const char* hex : {"81", "8d", "8f", "90", "9d"}) {
    const std::string line = std::string("\xE9 b") + static_cast<char>(std::stoi(hex, nullptr, 16)) + "c";
    EXPECT_EQ(error_of(line, TextEncoding::kWindows1252),
              std::string("a.txt:7: byte 4 of the line, 0x") + hex +
                  ", is not windows-1252; set data.encoding or convert the file, for example with iconv");
  }
}

TEST(TextEncoding, InvalidUtf8IsNamedByTheByteWhereTheCharacterBegins) {
  const std::string good = "é 日 \xF0\x9F\x98\x80\r";  // 2 + 1 + 3 + 1 + 4 + 1 bytes
  EXPECT_EQ(to_utf8(good, TextEncoding::kUtf8, ""), good);
  const std::map<std::string, std::string> bad = {{"\xE9", "e9"},         {"\xE2\x82", "e2"}, {"\xC0\xAF", "c0"},
                                                  {"\xED\xA0\x80", "ed"}, {"\x80", "80"},     {"\xFF", "ff"}};
  for (const auto& [bytes, hex] : bad) {
    EXPECT_EQ(error_of(good + bytes + " x", TextEncoding::kUtf8),
              "a.txt:7: byte 13 of the line, 0x" + hex +
                  ", is not utf-8; set data.encoding or convert the file, for example with iconv");
  }
}

TEST(LowerCase, HasTheCapitalLettersOfWindows1252AndNoOthers) {
  std::map<unsigned, unsigned> small = {{0x152, 0x153}, {0x160, 0x161}, {0x17D, 0x17E}, {0x178, 0xFF}};
  for (unsigned letter = 'A'; letter <= 'Z'; ++letter) small[letter] = letter + 32;
  for (unsigned letter = 0xC0; letter <= 0xDE; ++letter) {
    if (letter != 0xD7) small[letter] = letter + 32;
  }
  for (unsigned point = 0; point < 0x800; ++point) {
    const auto found = small.find(point);
    EXPECT_EQ(lower_cased(utf8(point)), utf8(found == small.end() ? point : found->second)) << std::hex << point;
  }
  EXPECT_EQ(lower_cased("AZ Ÿ×ŠÉTÉ \u2160日"), "az ÿ×šété \u2160日");
  EXPECT_EQ(lower_cased(""), "");
}

/// A text of enough lines.
std::string lines_of(const std::string& line) {
  std::string text;
  while (text.size() < 200) text += line + "\n";
  return text;
}

/// As iconv writes it from ASCII, without a byte order mark.
std::string utf16(const std::string& text, bool little_endian) {
  std::string wide;
  for (const char c : text) wide += little_endian ? std::string{c, '\0'} : std::string{'\0', c};
  return wide;
}

TEST(LooksCoded, TextThatAnotherToolHasWritten) {
  using testing::HasSubstr;
  const std::string english = lines_of("The cat sat on the mat, all 9 of its lives at stake.");
  for (const std::string& numbers : {lines_of("116 104 101 32 99 97 116"), lines_of("1\t0\t1\r"), lines_of("104")}) {
    EXPECT_THAT(looks_coded(numbers, true), HasSubstr("digits and blanks alone; it may be a list of numbers"));
    EXPECT_THAT(looks_coded(numbers, false), HasSubstr("digits and blanks alone"));
  }
  for (const bool little_endian : {true, false}) {
    EXPECT_THAT(looks_coded(utf16(english, little_endian), false), HasSubstr("UTF-16"));
    EXPECT_THAT(looks_coded(utf16(lines_of("12 13"), little_endian), true), HasSubstr("UTF-16"));
  }
  EXPECT_THAT(looks_coded("\xFF\xFE"
                          "a",
                          true),
              HasSubstr("UTF-16"))
      << "a byte order mark is enough";
  EXPECT_THAT(looks_coded(lines_of("t h e _ c a t _ s a t"), true), HasSubstr("a blank after each letter"));
  EXPECT_THAT(looks_coded(lines_of("т о т _ к о т"), true), HasSubstr("a blank after each letter"));
}

TEST(LooksCoded, NothingElse) {
  const std::string english = lines_of("The cat sat on the mat, all 9 of its lives at stake.");
  for (const std::string& text :
       {english, lines_of("t h e cat"), lines_of("31415926535897932384626433"), lines_of("3.14 2.72"),
        lines_of("это не числа"), lines_of("thecatsatonthemat"), english + std::string(2, '\0'),
        std::string("12 13 14\n"), std::string("a b c\n"), std::string()}) {
    EXPECT_EQ(looks_coded(text, true), "") << text;
    EXPECT_EQ(looks_coded(text, false), "") << text;
  }
  EXPECT_EQ(looks_coded(lines_of("t h e _ c a t"), false), "") << "words of one letter are words";
  EXPECT_EQ(looks_coded(std::string(500, '7'), true), "") << "one number";
}

}  // namespace
}  // namespace tearless::engine::text_encoding_test
