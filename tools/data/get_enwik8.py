#!/usr/bin/env python3
"""get_enwik8.py [FOLDER [OUT]]: cuts enwik8, the first 100 million bytes of a dump of the English Wikipedia (Mahoney 2006), for grids of the
task language_model.

FOLDER (default: shared/data/charlm beside the checkout) holds enwik8, plain, .xz, .gz or .zip as published, or a beginning of it whose name
says how many bytes it has: enwik8.first1000000. OUT (default: data/enwik8, which git ignores) receives train.txt, dev.txt and test.txt:
90, 5 and 5 million bytes, in this order; of a beginning 90 %, 5 % and 5 %.
The text is Wikipedia's (CC BY-SA and GFDL).
"""

import characters
import raw_data

SOURCE = "enwik8 of http://mattmahoney.net/dc/enwik8.zip"
SHA256 = "2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8"


def main(folder=raw_data.SHARED / "charlm", out=raw_data.ROOT / "data" / "enwik8"):
    characters.get("get_enwik8", "enwik8", SHA256, rb"(?s)<mediawiki.*", SOURCE, folder, out)


if __name__ == "__main__":
    raw_data.run(main, __doc__)
