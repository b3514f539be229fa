#!/usr/bin/env python3
"""get_text8.py [FOLDER [OUT]]: cuts text8, the first 100 million letters of a cleaned English Wikipedia (Mahoney 2006), for grids of the task
language_model.

FOLDER (default: shared/data/charlm beside the checkout) holds text8, plain, .xz, .gz or .zip as published, or a beginning of it whose name
says how many bytes it has: text8.first6877825. OUT (default: data/text8, which git ignores) receives train.txt, dev.txt and test.txt:
90, 5 and 5 million bytes, in this order; of a beginning 90 %, 5 % and 5 %.
The text is Wikipedia's (CC BY-SA and GFDL).
"""

import characters
import raw_data

SOURCE = "text8 of http://mattmahoney.net/dc/text8.zip"
SHA256 = "6e890197040d37d85beb962ae1f041ff1d9a9ca8d20c7d99c85027eebf51dca7"


def main(folder=raw_data.SHARED / "charlm", out=raw_data.ROOT / "data" / "text8"):
    characters.get("get_text8", "text8", SHA256, rb"[a-z ]*", SOURCE, folder, out)


if __name__ == "__main__":
    raw_data.run(main, __doc__)
