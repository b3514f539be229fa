// Images of digits in IDX files (MNIST): the settings of the data ([data]), the reader, and batches of images.
//
// IDX, all integers big-endian:
//
//   images   byte 0   magic number 0x00000803: bytes, three dimensions
//            byte 4   number of images
//            byte 8   height
//            byte 12  width
//            byte 16  the pixels, image by image, row by row; 0 is background, 255 ink
//   labels   byte 0   magic number 0x00000801: bytes, one dimension
//            byte 4   number of labels
//            byte 8   the labels, 0–9
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/raw_files.h"

namespace tearless::engine {

/// [data] of digits. Its paths are not part of a run's identity; its checksums are.
struct DigitsOptions {
  std::string name = "";        // for messages; part of the identity only while checksums are missing
  std::string how_to_get = "";  // sentence shown when a file is missing
  std::string train_images = "", train_labels = "";  // IDX files of the training and dev images, not compressed
  std::string test_images = "", test_labels = "";
  int64_t dev_first = 5000;  // the first images of train_images are the dev set
  int64_t train_count = 0;   // training images, the next ones; 0: all others
  double mean = 0.1307;      // of the pixels of MNIST's training images, divided by 255
  double deviation = 0.3081;
  // SHA-256 of "<SHA-256 of the images> <SHA-256 of the labels>", filled in by DataFiles::fingerprint(); "" until then.
  std::string train_sha256 = "", test_sha256 = "";
};

/// [train.batch] of digits.
struct ImageBatchOptions {
  int64_t images = 32;
};

void describe(SettingsVisitor& visitor, DigitsOptions& options);
void describe(SettingsVisitor& visitor, ImageBatchOptions& options);

/// Some images of a set: their numbers in the set, from 0.
using ImageIds = std::vector<int32_t>;

/// Image i is the bytes from i · height · width on.
struct DigitSet {
  std::vector<uint8_t> pixels;  // [N, H, W]
  std::vector<int32_t> labels;  // [N] 0–9

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

struct Digits {
  int64_t height = 0, width = 0;
  DigitSet train, dev, test;
};

/// The files of two sets: of the training and dev images, and of the test images. Borrows `data`.
DataFiles data_files(DigitsOptions& data);

/// The sizes of the images and of the three sets.
struct DigitSizes {
  int64_t height = 0, width = 0;
  int64_t train = 0, dev = 0, test = 0;  // images
};
/// Reads the sizes from the headers of the files alone. Throws UserError, naming file and byte, for a file that is
/// compressed, has another magic number, ends early or late, or has no image; for images without a label each, training
/// and test images of different size, and counts that exceed the data. After DataFiles::fingerprint().
DigitSizes read_digit_sizes(DigitsOptions data);

/// Reads the three sets. Throws UserError as read_digit_sizes(), and for a label above 9 and bytes that do not match
/// the checksum in `data`.
Digits read_digits(DigitsOptions data);

/// The batches of one pass over a training set of `count` images: shuffled, then cut into `options.images` a batch; the
/// last may be smaller. A pure function of (seed, pass); every image is in exactly one batch.
std::vector<ImageIds> cut_image_batches(int64_t count, const ImageBatchOptions& options, uint32_t seed, int64_t pass);

/// The batches of an evaluation: the images in their order.
std::vector<ImageIds> evaluation_image_batches(int64_t count, int64_t images);

struct DigitBatch {
  std::vector<float> pixels;    // [N, H, W] (pixel / 255 - mean) / deviation
  std::vector<int32_t> labels;  // [N]
};

/// These images of `set` (a set of `digits`), standardised with the mean and the deviation of `data`.
DigitBatch digit_batch(const Digits& digits, const DigitSet& set, std::span<const int32_t> images,
                       const DigitsOptions& data);

}  // namespace tearless::engine
