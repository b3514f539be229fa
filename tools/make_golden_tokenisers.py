#!/usr/bin/env python3
"""Writes tests/golden/tokenisers.json: lines without spaces, and what sacreBLEU's tokenisers zh and char make of them.

    python3 -m venv venv && venv/bin/pip install sacrebleu==2.6.0
    venv/bin/python tools/make_golden_tokenisers.py > tests/golden/tokenisers.json
"""

import json
import random

import sacrebleu
from sacrebleu.metrics import BLEU

# The ends of the ranges that zh splits, their neighbours, and characters of other scripts.
CHARACTERS = (
    "今天天气不错我们去公园散步，。！？「」（）ＡＢ１２ｱｲ㈱㍿⺀⿰ㄅㆠ㇀"
    "ひらがなカタカナ한국어ไทยภาษาລາວខ្មែរမြန်မာ"
    "abcXYZ019.,-–—‘’“”…%$&<>\"'/:;!?()[]{}_^`~|@#*+=\\\u3000\u00a0\u2028 \u2003\t"
    "\u1fff\u2000\u2001\u2a6d\u2a6e\u2e7f\u2eff\u2fa2\u33ff\u3400\u4db5\u4db6\u4dff\u4e00\u9fa5\u9fbb\u9fbc\ufa2d\ufa2e\ufeff\uff00\uffef\ufff0"
    "\U00020000\U0002a6d6\U0002f800\U0002fa1d\U0001f600"
)
PAIRS = {
    "two sentences": [["今天天气不错，我们去公园散步。", "今天天气很好，我们去公园散步。"], ["这是二十一世纪的新战争。", "这是21世纪的新战争。"]],
    "mixed with English and numbers": [["他用Python 3.10写了1,000行代码。", "他用 Python 3.10 写了 1,000 行代码。"], ["GDP增长5.5%。", "GDP增长了5.5%."]],
    "stops at the ends": [["5.", "5."], [".", "."], ["a,b.", "a, b."], ["。", "."]],
    "white space": [["　今天　好　", "今天好"], ["", "好"], [" \t ", "好"]],
    "entities": [["&quot;好&amp;坏&quot; <skipped>", "\"好&坏\""]],
    "Japanese": [["今日はいい天気ですね。", "今日は良い天気です。"], ["カタカナとﾊﾝｶｸ", "カタカナとハンカク"]],
    "Thai": [["วันนี้อากาศดีมาก", "วันนี้อากาศดี"]],
}


def main():
    chance = random.Random(1)
    pairs = dict(PAIRS)
    for number in range(12):
        lines = []
        for _ in range(4):
            line = "".join(chance.choice(CHARACTERS) for _ in range(chance.randint(0, 40)))
            other = "".join(c if chance.random() < 0.8 else chance.choice(CHARACTERS) for c in line)
            lines.append([line, other])
        pairs[f"random {number}"] = lines
    sets = []
    for name, lines in pairs.items():
        one = {"name": name, "pairs": lines}
        for tokeniser in ("zh", "char"):
            metric = BLEU(tokenize=tokeniser)
            score = metric.corpus_score([line[0] for line in lines], [[line[1] for line in lines]])
            one[tokeniser] = {
                "words": [metric.tokenizer(reference.rstrip()).split() for _, reference in lines],
                "line": score.format(2, False, str(metric.get_signature())),
            }
        sets.append(json.dumps(one))
    print(json.dumps({"sacrebleu": sacrebleu.__version__})[:-1] + ', "sets": [\n' + ",\n".join(sets) + "\n]}")


if __name__ == "__main__":
    main()
