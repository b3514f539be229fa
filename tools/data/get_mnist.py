#!/usr/bin/env python3
"""get_mnist.py [FOLDER [OUT]]: prepares the images of digits MNIST (LeCun, Cortes and Burges) for grids of the task digits.

FOLDER (default: shared/data/mnist beside the checkout) holds {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain, .xz or .gz as published.
OUT (default: data/mnist, which git ignores) receives the four IDX files, unpacked: 55 MB.
"""

import raw_data

SOURCE = "the four files of http://yann.lecun.com/exdb/mnist"
FILES = (
    raw_data.RawFile("train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", 47040016),
    raw_data.RawFile("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 60008),
    raw_data.RawFile("t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 7840016),
    raw_data.RawFile("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 10008),
)


def main(folder=raw_data.SHARED / "mnist", out=raw_data.ROOT / "data" / "mnist"):
    raw_data.get("get_mnist", FILES, SOURCE, folder, out)


if __name__ == "__main__":
    raw_data.run(main, __doc__)
