// IDX files, the three sets of images, their batches, and the message for each fault.
#include "engine/data/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine::digits_test {
namespace {

using tearless::test::error_of;
using Ids = std::vector<int32_t>;
using Pixels = std::vector<uint8_t>;

std::string number(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

/// `count` images of 2 × 3 pixels with the values first, first + 1, …
std::string images_file(uint32_t count, int first) {
  std::string bytes = number(0x803) + number(count) + number(2) + number(3);
  for (uint32_t i = 0; i < 6 * count; ++i) bytes += static_cast<char>(first + static_cast<int>(i));
  return bytes;
}

std::string labels_file(const std::vector<int>& labels) {
  std::string bytes = number(0x801) + number(static_cast<uint32_t>(labels.size()));
  for (const int label : labels) bytes += static_cast<char>(label);
  return bytes;
}

class DigitFiles : public testing::Test {
 protected:
  DigitFiles() {
    data_ = {.name = "toy",
             .train_images = path("train.images"),
             .train_labels = path("train.labels"),
             .test_images = path("test.images"),
             .test_labels = path("test.labels"),
             .dev_first = 2};
    write("train.images", images_file(5, 0));
    write("train.labels", labels_file({5, 0, 4, 1, 9}));
    write("test.images", images_file(2, 200));
    write("test.labels", labels_file({7, 2}));
  }
  void write(const std::string& name, std::string_view bytes) { test::write_text(folder_ / name, bytes); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read_error() const {
    return error_of([this] { read_digits(data_); });
  }

  test::TempFolder folder_;
  DigitsOptions data_;
};

TEST_F(DigitFiles, GiveTheFirstImagesToDev) {
  const Digits digits = read_digits(data_);
  EXPECT_EQ(digits.height, 2);
  EXPECT_EQ(digits.width, 3);
  EXPECT_EQ(digits.dev.labels, (Ids{5, 0}));
  EXPECT_EQ(digits.dev.pixels, (Pixels{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(digits.train.labels, (Ids{4, 1, 9}));
  EXPECT_EQ(digits.train.size(), 3);
  EXPECT_EQ(digits.train.pixels.size(), 18u);
  EXPECT_EQ(digits.train.pixels.front(), 12);
  EXPECT_EQ(digits.train.pixels.back(), 29);
  EXPECT_EQ(digits.test.labels, (Ids{7, 2}));
  EXPECT_EQ(digits.test.pixels.front(), 200);
}

TEST_F(DigitFiles, AreCutToTheTrainingImagesThatAreSet) {
  data_.dev_first = 1;
  data_.train_count = 2;
  Digits digits = read_digits(data_);
  EXPECT_EQ(digits.dev.labels, (Ids{5}));
  EXPECT_EQ(digits.train.labels, (Ids{0, 4}));
  EXPECT_EQ(digits.train.pixels, (Pixels{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}));
  data_.train_count = 4;
  EXPECT_EQ(read_digits(data_).train.labels, (Ids{0, 4, 1, 9}));
  data_.train_count = 5;
  EXPECT_EQ(read_error(), "data.train_count = 5 is too many: " + path("train.images") +
                              " has 5 images, of which data.dev_first takes 1");
  data_.dev_first = 5;
  EXPECT_EQ(read_error(), "data.dev_first = 5 leaves no training image: " + path("train.images") + " has 5 images");
}

TEST_F(DigitFiles, ThatAreNoIdxFilesAreRefusedByTheByte) {
  const std::string images = path("train.images"), labels = path("train.labels");
  write("train.images", "\x1f\x8b\x08 something");
  EXPECT_EQ(read_error(), images + " is compressed with gzip; unpack it with gunzip");
  write("train.images", labels_file({1, 2, 3, 4, 5}));
  EXPECT_EQ(read_error(), images +
                              ": the magic number at byte 0 is 0x00000801; an IDX file of images begins with "
                              "0x00000803");
  for (const size_t size : {0, 3, 4, 15}) {
    write("train.images", images_file(5, 0).substr(0, size));
    EXPECT_EQ(read_error(), images + " ends at byte " + std::to_string(size) +
                                ", within the header of 16 bytes; copy the file again");
  }
  write("train.images", images_file(0, 0));
  EXPECT_EQ(read_error(), images + ": the number of images at byte 4 is 0");
  write("train.images", number(0x803) + number(1) + number(0) + number(3));
  EXPECT_EQ(read_error(), images + ": the height at byte 8 is 0 pixels; it must be between 1 and 1024");
  write("train.images", number(0x803) + number(1) + number(1024) + number(1025));
  EXPECT_EQ(read_error(), images + ": the width at byte 12 is 1025 pixels; it must be between 1 and 1024");
  write("train.images", images_file(5, 0).substr(0, 45));
  EXPECT_EQ(read_error(), images + " ends at byte 45, but its 5 images end at byte 46; copy the file again");
  write("train.images", images_file(5, 0) + "x");
  EXPECT_EQ(read_error(), images + ": its 5 images end at byte 46, but the file at byte 47; copy it again");
  write("train.images", number(0x803) + number(0xFFFFFFFF) + number(1024) + number(1024));
  EXPECT_EQ(read_error(), images +
                              " ends at byte 16, but its 4294967295 images end at byte 4503599626321936; copy "
                              "the file again");

  write("train.images", images_file(5, 0));
  write("train.labels", images_file(5, 0));
  EXPECT_EQ(read_error(), labels +
                              ": the magic number at byte 0 is 0x00000803; an IDX file of labels begins with "
                              "0x00000801");
  write("train.labels", labels_file({1, 2, 3, 4, 5}).substr(0, 12));
  EXPECT_EQ(read_error(), labels + " ends at byte 12, but its 5 labels end at byte 13; copy the file again");
}

TEST_F(DigitFiles, ThatDoNotBelongTogetherAreRefused) {
  write("train.labels", labels_file({1, 2, 3, 4}));
  EXPECT_EQ(read_error(), path("train.images") + " has 5 images but " + path("train.labels") +
                              " has 4 labels (byte 4 of each); every image needs a label");
  write("train.labels", labels_file({5, 0, 4, 1, 9}));
  for (const int label : {10, 255}) {
    write("test.labels", labels_file({7, label}));
    EXPECT_EQ(read_error(), path("test.labels") + ": the label at byte 9 is " + std::to_string(label) +
                                "; it must be a digit, 0 to 9");
  }
  write("test.labels", labels_file({7, 2}));
  for (const auto& [height, width] : {std::pair(3u, 3u), {2u, 4u}}) {
    write("test.images",
          number(0x803) + number(2) + number(height) + number(width) + std::string(2 * height * width, 'x'));
    EXPECT_EQ(read_error(), path("train.images") + " has images of 2 × 3 pixels, but " + path("test.images") + " of " +
                                std::to_string(height) + " × " + std::to_string(width) + " (bytes 8 to 15 of each)");
  }
}

TEST_F(DigitFiles, AreStandardisedByMeanAndDeviation) {
  Digits digits = read_digits(data_);
  digits.train.pixels[0] = 0;
  digits.train.pixels[5] = 255;
  DigitBatch batch = digit_batch(digits, digits.train, Ids{2, 0}, data_);
  EXPECT_EQ(batch.labels, (Ids{9, 4}));
  ASSERT_EQ(batch.pixels.size(), 12u);
  EXPECT_FLOAT_EQ(batch.pixels[0], -0.11873532f);  // of byte 24
  EXPECT_FLOAT_EQ(batch.pixels[6], -0.42421293f);
  EXPECT_FLOAT_EQ(batch.pixels[11], 2.8214867f);
  data_.mean = 0.5;
  data_.deviation = 0.25;
  batch = digit_batch(digits, digits.train, Ids{0}, data_);
  EXPECT_EQ(batch.pixels[0], -2.0f);
  EXPECT_EQ(batch.pixels[5], 2.0f);
  EXPECT_EQ(digit_batch(digits, digits.test, Ids{1}, data_).labels, (Ids{2}));
}

TEST(DigitBatches, AreShuffledBySeedAndPass) {
  // Computed by an independent Philox and shuffle in Python.
  const ImageBatchOptions four{.images = 4};
  const auto batches = cut_image_batches(10, four, 3, 2);
  EXPECT_EQ(batches, (std::vector<ImageIds>{{2, 1, 4, 6}, {9, 0, 3, 8}, {7, 5}}));
  EXPECT_EQ(cut_image_batches(10, four, 3, 2), batches);
  EXPECT_NE(cut_image_batches(10, four, 3, 1), batches);
  EXPECT_NE(cut_image_batches(10, four, 2, 2), batches);
  EXPECT_EQ(cut_image_batches(8, four, 1, 0).size(), 2u);  // no empty batch at the end
  EXPECT_EQ(cut_image_batches(10, {.images = 10}, 3, 2), (std::vector<ImageIds>{{2, 1, 4, 6, 9, 0, 3, 8, 7, 5}}));
}

TEST(DigitBatches, OfAnEvaluationKeepTheOrder) {
  EXPECT_EQ(evaluation_image_batches(5, 2), (std::vector<ImageIds>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(evaluation_image_batches(2, 100), (std::vector<ImageIds>{{0, 1}}));
}

TEST(DigitBatches, HaveTheImagesThatAreSet) {
  ImageBatchOptions options;
  const auto describe_all = [&](SettingsVisitor& v) { describe(v, options); };
  EXPECT_EQ(canonical_settings(Identity::kResult, describe_all), "images = 32\n");
  read_settings(parse_toml_settings("images = 7", "a.toml"), describe_all);
  EXPECT_EQ(options.images, 7);
  EXPECT_EQ(error_of([&] { read_settings(parse_toml_settings("images = 0", "a.toml"), describe_all); }),
            "a.toml:1: images = 0 is out of range; it must be between 1 and 1000000");
}

// The sums are of an independent program in Python.
TEST(Mnist, HasTheImagesAndLabelsOfItsFiles) {
  TEARLESS_NEEDS_SHARED("data/mnist/train-images-idx3-ubyte.gz");
  const test::TempFolder folder;
  const test::Finished finished = test::run(
      {.arguments = {"/usr/bin/env", "python3", "-B", (test::source_root() / "tools/data/get_mnist.py").string(),
                     (test::shared_folder() / "data/mnist").string(), folder.path().string()}});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const DigitsOptions data{.name = "mnist",
                           .train_images = (folder / "train-images-idx3-ubyte").string(),
                           .train_labels = (folder / "train-labels-idx1-ubyte").string(),
                           .test_images = (folder / "t10k-images-idx3-ubyte").string(),
                           .test_labels = (folder / "t10k-labels-idx1-ubyte").string()};
  const Digits digits = read_digits(data);
  EXPECT_EQ(digits.height, 28);
  EXPECT_EQ(digits.width, 28);
  const auto first_labels = [](const DigitSet& set) { return Ids(set.labels.begin(), set.labels.begin() + 8); };
  const auto label_sum = [](const DigitSet& set) { return std::accumulate(set.labels.begin(), set.labels.end(), 0); };
  const auto pixel_sum = [](const DigitSet& set) {
    return std::accumulate(set.pixels.begin(), set.pixels.end(), int64_t{0});
  };
  EXPECT_EQ(digits.dev.size(), 5000);
  EXPECT_EQ(first_labels(digits.dev), (Ids{5, 0, 4, 1, 9, 2, 1, 3}));
  EXPECT_EQ(label_sum(digits.dev), 22335);
  EXPECT_EQ(pixel_sum(digits.dev), 130170281);
  EXPECT_EQ(digits.train.size(), 55000);
  EXPECT_EQ(first_labels(digits.train), (Ids{7, 3, 4, 6, 1, 8, 1, 0}));
  EXPECT_EQ(label_sum(digits.train), 244901);
  EXPECT_EQ(pixel_sum(digits.train), 1437128264);
  EXPECT_EQ(digits.test.size(), 10000);
  EXPECT_EQ(first_labels(digits.test), (Ids{7, 2, 1, 0, 4, 1, 4, 9}));
  EXPECT_EQ(label_sum(digits.test), 44434);
  EXPECT_EQ(pixel_sum(digits.test), 264923200);

  const DigitBatch batch = digit_batch(digits, digits.dev, Ids{0}, data);
  EXPECT_EQ(batch.pixels.size(), 784u);
  EXPECT_NEAR(std::accumulate(batch.pixels.begin(), batch.pixels.end(), 0.0), 17.761689291, 1e-4);
  const auto ink = std::find_if(batch.pixels.begin(), batch.pixels.end(), [](float x) { return x > -0.42f; });
  EXPECT_EQ(ink - batch.pixels.begin(), 152);
}

}  // namespace
}  // namespace tearless::engine::digits_test
