#!/usr/bin/env python3
"""get_ud_ewt.py [FOLDER [OUT]]: prepares the treebank UD English EWT 2.16 for grids of the task parse.

FOLDER (default: shared/data/ud-english-ewt beside the checkout) holds en_ewt-ud-train.conllu, en_ewt-ud-dev.conllu and
en_ewt-ud-test.conllu, each plain, .xz or .gz. OUT (default: data/ud-english-ewt, which git ignores) receives them, unpacked.
Cite Silveira et al. 2014; the treebank is free under CC BY-SA 4.0.
"""

import raw_data

SOURCE = "UD English EWT 2.16 (https://github.com/UniversalDependencies/UD_English-EWT)"
FILES = (
    raw_data.RawFile("en_ewt-ud-train.conllu", "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b", 14203025),
    raw_data.RawFile("en_ewt-ud-dev.conllu", "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6", 1805545),
    raw_data.RawFile("en_ewt-ud-test.conllu", "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd", 1804515),
)


def main(folder=raw_data.SHARED / "ud-english-ewt", out=raw_data.ROOT / "data" / "ud-english-ewt"):
    raw_data.get("get_ud_ewt", FILES, SOURCE, folder, out)


if __name__ == "__main__":
    raw_data.run(main, __doc__)
