#!/usr/bin/env python3
"""Writes tests/golden/detokenised.json: tokenised lines, and what detokenizer.perl of Moses makes of them in several languages.

Needs the script and perl. Run by hand, look at the difference, commit it:

    python3 tools/make_golden_detokenised.py detokenizer.perl > tests/golden/detokenised.json
    python3 tools/make_golden_detokenised.py detokenizer.perl --seed 2 --random 20000    # to look for a difference
"""
import argparse
import json
import random
import subprocess

# Czech, English, Finnish, French, Italian and Korean have rules of their own; German and Chinese stand for the others.
LANGUAGES = ["cs", "de", "en", "fi", "fr", "it", "ko", "zh"]

LINES = [
    "Hello , world !", "( a [ b { c } d ] e ) ; f : g", "that costs $ 5 or € 7.50 , £ 3", "¿ Qué ? ¡ Sí !", "50 % of it \\ n", "wait ... what ?!",
    "it 's the boys ' house , and he said ' no '", "don 't , l 'été , 'tis the 1990 's '90s", "é 's ß 'é ( 's ) 's", "\" one \" and \" two \"",
    "\" open alone", "'' one '' `` two `` ` three `", "„ eins “ und „ zwei “", "„ one ” “ two ”", "\" ' nested ' \"", "' \" crossed ' \"",
    "the cost of l' eau et d' argent , dell' arte , aujourd' hui , l' 5 , 5' eau", "Vraiment ? Oui ! C' est : 5 % ; non \\ ?!", "« oui » , non",
    "3 . 14 a 3 , 5 a 3 ; 5 a x . 5 a 3 . x", "chceš - li to , chceš – li , e - mail a E - MAILU , e - Mail x y", "je - li", "chceš - li to", "5 - li to a b",
    "EU: n ja EU: SSA ja EU: ssakin , EU: seen , EU: Hän , EU: inemmekaan , EU : n", "EU: ntalo EU: Ä EU: äpä", ": n",
    "这 是 一 个 测试 。 我 用 Python 3 写 。", "이것은 시험 입니다 .", "これ は テスト です 。", "ｱ ｲ 㐀 𠀀 a 𠀀", "( 这 ) 是",
    "&quot; a &amp;lt; b &apos;s &#124; &#91; c &#93; &lt;tag&gt; &bar; &bra; &ket; &amp;amp; &#39; &AMP;", "&apos; &quot; &amp;quot;",
    "well @-@ known @-@ fact", "a @-@ @-@ b", "@-@ a", "a @-@", "a @ - @ b", "@-@", "<p> not , touched ! </p>", "< >", "<>", "<a>", "<a> b , c", "a < b , c >",
    "  two  blanks ,  here ", "( ) ( a", "(  a", "\t tab , here", "a , \u00a0 , b", "", " ", "\u00a0", "0 ' s", "s '", "' s '", "x's ' y", "a.b , c.d",
    "Ünïcödé 's façade 's naïve ' ?", "e\u0301 's", "5 's 5' s", "ﬁ 's", "Ⅷ 's", "👍 's ! 👍 ,", "a / b @/@ c -LRB- -RRB-", "A B C .", ". . .", ", , ,", "\" , \"",
]
WORDS = ["a", "bees", "Öl", "s", "5", "12", ".", ",", "?", "!", ":", ";", "%", "\\", "(", ")", "[", "]", "{", "}", "$", "€", "¿", "'", "\"", "„", "“", "”", "`", "``", "''",
         "'s", "'é", "l'", "é'", "-", "–", "li", "mailu", "@-@", "&quot;", "&apos;", "&amp;", "&#91;", "EU:", "n", "ssa", "Hän", "这", "好", "한", "「", "", "?!", "''s", "«",
         "<", ">", "0", "\u00a0"]


def made_by(script, language, lines):
    done = subprocess.run(["perl", script, "-q", "-l", language], input="".join(line + "\n" for line in lines), capture_output=True, text=True,
                          encoding="utf-8", check=True)
    made = done.stdout.split("\n")
    if made.pop() != "" or len(made) != len(lines):
        raise SystemExit(f"{script} returned {len(made)} lines for {len(lines)}")
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("script", help="detokenizer.perl")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=100, help="how many lines of random words (default: 100)")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    lines = LINES + [" ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 12))) for _ in range(arguments.random)]
    sets = [f'"{language}": {json.dumps(made_by(arguments.script, language, lines), ensure_ascii=False)}' for language in LANGUAGES]
    print('{"lines": ' + json.dumps(lines, ensure_ascii=False) + ",\n" + ",\n".join(sets) + "}")


if __name__ == "__main__":
    main()
