// Where a page of Markdown has places, what it refuses, and that all else of it stays byte for byte.
#include "harness/report/text_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace tearless::harness::text_page_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Words = std::vector<std::string>;

std::vector<Words> words_in(const std::string& page) {
  std::vector<Words> words;
  const TextPage read(page, "p.md");
  for (const TextPage::Place& place : read.places()) words.push_back(place.words);
  return words;
}

std::string refusal_of(const std::string& page) {
  return test::error_of([&] { TextPage(page, "p.md"); });
}

TEST(TextPage, PutsTextsOfLinesAndOfSentencesInItsPlacesAndLeavesAllElse) {
  const std::string page =
      "# A title \t\n<!-- another comment -->\n<!-- tearless table a --layout 'b c.toml' -->\nold\n<!-- end -->\n\n"
      "It is <!--tearless cell x=1-->old<!--  end  -->, and no line ends here";
  const TextPage read(page, "p.md");
  ASSERT_EQ(read.places().size(), 2u);
  EXPECT_EQ(read.places()[0].line, 3u);
  EXPECT_EQ(read.places()[1].line, 7u);
  EXPECT_TRUE(read.places()[0].begins_line);
  EXPECT_FALSE(read.places()[1].begins_line);
  EXPECT_THAT(words_in(page), ElementsAre(Words{"table", "a", "--layout", "b c.toml"}, Words{"cell", "x=1"}));
  const std::string filled = read.with({"| new |\n\n- note\n", "75.39 ± 1.13"});
  EXPECT_EQ(filled,
            "# A title \t\n<!-- another comment -->\n<!-- tearless table a --layout 'b c.toml' -->\n| new |\n\n- note\n"
            "<!-- end -->\n\nIt is <!--tearless cell x=1-->75.39 ± 1.13<!--  end  -->, and no line ends here");
  EXPECT_EQ(TextPage(filled, "p.md").with({"| new |\n\n- note\n", "75.39 ± 1.13"}), filled) << "once more";
}

TEST(TextPage, HasLineBreaksOfItsOwnInItsPlaces) {
  EXPECT_EQ(TextPage("a\r\n<!-- tearless table -->\r\n<!-- end -->\r\n", "p.md").with({"x\ny\n"}),
            "a\r\n<!-- tearless table -->\r\nx\r\ny\r\n<!-- end -->\r\n");
  EXPECT_EQ(TextPage("<!-- tearless\n table -->\n<!-- end -->", "p.md").with({"x\n"}),
            "<!-- tearless\n table -->\nx\n<!-- end -->");
}

TEST(TextPage, HasOptionsForThePlacesAfterThemWithoutAnEnd) {
  const std::string page = "<!-- tearless --workspace a.tar.gz -->\n<!-- tearless table -->\n<!-- end -->\n";
  const TextPage read(page, "p.md");
  EXPECT_THAT(words_in(page), ElementsAre(Words{"--workspace", "a.tar.gz"}, Words{"table"}));
  EXPECT_FALSE(read.places()[0].has_text);
  EXPECT_TRUE(read.places()[1].has_text);
  EXPECT_EQ(read.with({"", "x\n"}),
            "<!-- tearless --workspace a.tar.gz -->\n<!-- tearless table -->\nx\n<!-- end -->\n");
}

TEST(TextPage, LeavesCodeAlone) {
  EXPECT_THAT(words_in("```\n<!-- tearless table -->\n```\n"), IsEmpty());
  EXPECT_THAT(words_in("~~~~ md\n```\n~~~\n<!-- tearless table -->\n<!-- end -->\n~~~~~\n"), IsEmpty());
  EXPECT_THAT(words_in("   ```\n<!-- end -->\n"), IsEmpty()) << "to the end of the page";
  EXPECT_THAT(words_in("a ``<!-- tearless ` table -->`` b `<!-- end -->`"), IsEmpty());
  EXPECT_THAT(words_in("a ` b <!-- tearless table --><!-- end -->"), ElementsAre(Words{"table"})) << "no code";
  EXPECT_THAT(words_in("a `\nb <!-- tearless table --><!-- end --> `"), ElementsAre(Words{"table"})) << "nor this";
  EXPECT_THAT(words_in("```\n<!-- tearless a -->\n```\n<!-- tearless b -->\n<!-- end -->"), ElementsAre(Words{"b"}));
  EXPECT_THAT(words_in("```not``` a block\n<!-- tearless b -->\n<!-- end -->"), ElementsAre(Words{"b"}));
  EXPECT_THAT(words_in("<!-- a comment of another <!-- tearless table -->"), IsEmpty());
  EXPECT_THAT(words_in("<!-- tearlessly -->"), IsEmpty());
  EXPECT_THAT(words_in("a \\` b <!-- tearless table --><!-- end --> `"), ElementsAre(Words{"table"})) << "no code";
  EXPECT_THAT(words_in("a \\\\`<!-- tearless table -->`"), IsEmpty()) << "the backslash is escaped";
  EXPECT_THAT(words_in("`a\\` <!-- tearless table --><!-- end -->\\"), ElementsAre(Words{"table"})) << "none in code";
  EXPECT_THAT(words_in("\\<!-- tearless table -->"), IsEmpty());
  EXPECT_THAT(words_in("a\\\n```\n<!-- tearless table -->\n```"), IsEmpty()) << "at the end of a line";
}

TEST(TextPage, RefusesTextsThatWouldChangeItsPlaces) {
  const TextPage page("<!-- tearless a -->\n<!-- end -->\n\n<!-- tearless b -->\n<!-- end -->\n", "p.md");
  for (const std::string text : {"```\n", "x <!-- end --> y\n", "<!-- tearless c -->\n", "a <!-- b\n"}) {
    EXPECT_THAT(test::error_of([&] {
                  page.with({"x\n", text});
                }),
                testing::StartsWith("p.md:4: with the text of this place the page would have other places"))
        << text;
    EXPECT_THAT(test::error_of([&] { page.with({text, "x\n"}); }), testing::StartsWith("p.md:1: ")) << text;
  }
  EXPECT_THAT(page.with({"```\n<!-- end -->\n```\n", "<!-- b -->\n"}), testing::HasSubstr("\n<!-- end -->\n```\n"));
}

TEST(TextPage, NamesTheLineOfWhatIsNoPlace) {
  EXPECT_EQ(refusal_of("a\n<!-- tearless table -->\nb"), "p.md:2: the place has no end: put <!-- end --> behind it");
  EXPECT_EQ(refusal_of("a\n\n<!-- end -->"), "p.md:3: <!-- end --> ends no place: none begins before it");
  EXPECT_EQ(refusal_of("<!-- tearless a -->\nb <!-- tearless c -->"),
            "p.md:2: a place begins in another, that of line 1, which needs its <!-- end --> before");
  EXPECT_EQ(refusal_of("<!-- tearless a -->\n<!-- tearless --workspace c -->\n<!-- end -->"),
            "p.md:2: a place begins in another, that of line 1, which needs its <!-- end --> before");
  EXPECT_EQ(refusal_of("a\n<!-- tearless table\n"), "p.md:2: the comment has no -->");
  EXPECT_EQ(refusal_of("<!-- tearless -->"), "p.md:1: the comment has no command behind the word tearless");
  EXPECT_EQ(refusal_of("<!-- tearless table 'a -->"), "p.md:1: a quote ' has no other one that ends it");
}

TEST(CommentOfPlace, HasWordsThatAPageReads) {
  const Words words = {"table", "a --> b's", "c d", "-->"};
  EXPECT_THAT(words_in(comment_of(words) + "\n" + kEndOfPlace), ElementsAre(words));
}

}  // namespace
}  // namespace tearless::harness::text_page_test
