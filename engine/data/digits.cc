#include "engine/data/digits.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/shuffle.h"

namespace tearless::engine {
namespace {

constexpr int64_t kMaxSide = 1024;  // pixels; so that a file's size in bytes fits 64 bits
constexpr uint8_t kMaxDigit = 9;

constexpr int64_t kMaxHeaderBytes = 16;  // bytes; of a file of images

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = at; i < at + 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

/// The sizes in the header of an IDX file whose elements are bytes. `things` names them in messages: "images".
template <size_t Dimensions>
std::array<int64_t, Dimensions> idx_sizes(const FileStart& start, const std::string& file, std::string_view things) {
  const std::string& bytes = start.bytes;
  constexpr size_t kHeader = 4 + 4 * Dimensions;
  constexpr uint32_t kMagic = 0x800 + Dimensions;  // 8: unsigned bytes
  refuse_compressed(bytes, file);
  if (bytes.size() >= 4 && big_endian(bytes, 0) != kMagic) {
    fail("{}: the magic number at byte 0 is 0x{:08x}; an IDX file of {} begins with 0x{:08x}", file,
         big_endian(bytes, 0), things, kMagic);
  }
  if (bytes.size() < kHeader) {
    fail("{} ends at byte {}, within the header of {} bytes; copy the file again", file, bytes.size(), kHeader);
  }
  std::array<int64_t, Dimensions> sizes{};
  for (size_t i = 0; i < Dimensions; ++i) sizes[i] = big_endian(bytes, 4 + 4 * i);
  if (sizes[0] == 0) fail("{}: the number of {} at byte 4 is 0", file, things);
  for (size_t i = 1; i < Dimensions; ++i) {
    if (sizes[i] == 0 || sizes[i] > kMaxSide) {
      fail("{}: the {} at byte {} is {} pixels; it must be between 1 and {}", file, i == 1 ? "height" : "width",
           4 + 4 * i, sizes[i], kMaxSide);
    }
  }
  const int64_t element = std::accumulate(sizes.begin() + 1, sizes.end(), int64_t{1}, std::multiplies<>());
  const int64_t end = static_cast<int64_t>(kHeader) + sizes[0] * element;
  const int64_t size = start.file_size;
  if (size < end) {
    fail("{} ends at byte {}, but its {} {} end at byte {}; copy the file again", file, size, sizes[0], things, end);
  }
  if (size > end) {
    fail("{}: its {} {} end at byte {}, but the file at byte {}; copy it again", file, sizes[0], things, end, size);
  }
  return sizes;
}

struct ImageCounts {
  int64_t count = 0, height = 0, width = 0;
};

/// What the headers of a set's files say.
ImageCounts image_counts(const DataSet& set, const std::array<FileStart, 2>& starts) {
  const std::string &images = *set.settings[0].path, &labels = *set.settings[1].path;
  const auto [count, height, width] = idx_sizes<3>(starts[0], images, "images");
  const auto [label_count] = idx_sizes<1>(starts[1], labels, "labels");
  if (count != label_count) {
    fail("{} has {} but {} has {} (byte 4 of each); every image needs a label", images, counted(count, "image"), labels,
         counted(label_count, "label"));
  }
  return {count, height, width};
}

/// The images of a set's files.
std::pair<ImageCounts, DigitSet> read_images(const DataSet& files) {
  const std::vector<std::string> contents = read_files(files);
  const auto start = [](const std::string& bytes) {
    return FileStart{bytes.substr(0, kMaxHeaderBytes), static_cast<int64_t>(bytes.size())};
  };
  const ImageCounts counts = image_counts(files, {start(contents[0]), start(contents[1])});
  DigitSet set{.pixels = {contents[0].begin() + 16, contents[0].end()}, .labels = {}};
  for (size_t at = 8; at < contents[1].size(); ++at) {
    const auto label = static_cast<uint8_t>(contents[1][at]);
    if (label > kMaxDigit) {
      fail("{}: the label at byte {} is {}; it must be a digit, 0 to 9", *files.settings[1].path, at, label);
    }
    set.labels.push_back(label);
  }
  return {counts, std::move(set)};
}

/// The sizes of the three sets, which these files give with the settings.
DigitSizes set_sizes(const DigitsOptions& data, const ImageCounts& train, const ImageCounts& test) {
  if (train.height != test.height || train.width != test.width) {
    fail("{} has images of {} × {} pixels, but {} of {} × {} (bytes 8 to 15 of each)", data.train_images, train.height,
         train.width, data.test_images, test.height, test.width);
  }
  if (data.dev_first >= train.count) {
    fail("data.dev_first = {} leaves no training image: {} has {}", data.dev_first, data.train_images,
         counted(train.count, "image"));
  }
  const int64_t others = train.count - data.dev_first;
  if (data.train_count > others) {
    fail("data.train_count = {} is too many: {} has {}, of which data.dev_first takes {}", data.train_count,
         data.train_images, counted(train.count, "image"), data.dev_first);
  }
  return {.height = train.height,
          .width = train.width,
          .train = data.train_count == 0 ? others : data.train_count,
          .dev = data.dev_first,
          .test = test.count};
}

/// The images from `begin` to `end`, each of `image_size` bytes.
DigitSet some_images(const DigitSet& set, int64_t begin, int64_t end, int64_t image_size) {
  return {.pixels = {set.pixels.begin() + begin * image_size, set.pixels.begin() + end * image_size},
          .labels = {set.labels.begin() + begin, set.labels.begin() + end}};
}

}  // namespace

void describe(SettingsVisitor& v, DigitsOptions& o) {
  const bool has_checksums = !o.train_sha256.empty() && !o.test_sha256.empty();
  v.word(name_field("name of the data, for messages", has_checksums), o.name);
  v.word(path_field("how_to_get", "sentence shown when a file is missing"), o.how_to_get);
  v.word(
      path_field("train_images", "IDX file of the training images, not compressed, relative to the file that names it"),
      o.train_images);
  v.word(path_field("train_labels", "IDX file of their labels"), o.train_labels);
  v.word(path_field("test_images", "IDX file of the test images"), o.test_images);
  v.word(path_field("test_labels", "IDX file of their labels"), o.test_labels);
  v.integer({.key = "dev_first",
             .meaning = "so many images at the start of train_images are the development set",
             .min = 1,
             .max = 1e9},
            o.dev_first);
  v.integer({.key = "train_count",
             .meaning = "training images, the next ones; 0: all others",
             .min = 0,
             .max = 1e9,
             .neutral = 0},
            o.train_count);
  v.number({.key = "mean", .meaning = "subtracted from each pixel / 255", .min = 0, .max = 1}, o.mean);
  v.number({.key = "deviation", .meaning = "what the difference is divided by", .min = 1e-6, .max = 1e6}, o.deviation);
  v.word(checksum_field("train_sha256", "checksum of the training files, filled in by check"), o.train_sha256);
  v.word(checksum_field("test_sha256", "checksum of the test files, filled in by check"), o.test_sha256);
}

void describe(SettingsVisitor& v, ImageBatchOptions& o) {
  v.integer({.key = "images", .meaning = "images in a batch; the last of a pass may have fewer", .min = 1, .max = 1e6},
            o.images);
}

DataFiles data_files(DigitsOptions& data) {
  return {
      .what = named("data set", data.name),
      .how_to_get = data.how_to_get,
      .required = {},
      .needs = "[data] needs train_images, train_labels, test_images and test_labels",
      .sets = {{{{"data.train_images", &data.train_images}, {"data.train_labels", &data.train_labels}},
                &data.train_sha256},
               {{{"data.test_images", &data.test_images}, {"data.test_labels", &data.test_labels}}, &data.test_sha256}},
      .expected = "an IDX file"};
}

DigitSizes read_digit_sizes(DigitsOptions data) {
  const DataFiles files = data_files(data);
  const auto counts = [](const DataSet& set) {
    return image_counts(
        set, {read_start(*set.settings[0].path, kMaxHeaderBytes), read_start(*set.settings[1].path, kMaxHeaderBytes)});
  };
  return set_sizes(data, counts(files.sets[0]), counts(files.sets[1]));
}

Digits read_digits(DigitsOptions data) {
  const DataFiles files = data_files(data);
  const auto [train_counts, train] = read_images(files.sets[0]);
  auto [test_counts, test] = read_images(files.sets[1]);
  const DigitSizes sizes = set_sizes(data, train_counts, test_counts);
  const int64_t image_size = sizes.height * sizes.width;
  return {.height = sizes.height,
          .width = sizes.width,
          .train = some_images(train, sizes.dev, sizes.dev + sizes.train, image_size),
          .dev = some_images(train, 0, sizes.dev, image_size),
          .test = std::move(test)};
}

std::vector<ImageIds> cut_image_batches(int64_t count, const ImageBatchOptions& options, uint32_t seed, int64_t pass) {
  ImageIds order = in_order(count);
  shuffle(order, RandomStream(seed, "order"), static_cast<uint32_t>(pass), /*which=*/0);
  return cut_in_order(order, options.images);
}

std::vector<ImageIds> evaluation_image_batches(int64_t count, int64_t images) {
  return cut_in_order(in_order(count), images);
}

DigitBatch digit_batch(const Digits& digits, const DigitSet& set, std::span<const int32_t> images,
                       const DigitsOptions& data) {
  std::array<float, 256> standardised{};
  for (size_t pixel = 0; pixel < standardised.size(); ++pixel) {
    standardised[pixel] = static_cast<float>((static_cast<double>(pixel) / 255 - data.mean) / data.deviation);
  }
  const int64_t image_size = digits.height * digits.width;
  DigitBatch batch;
  batch.pixels.reserve(images.size() * static_cast<size_t>(image_size));
  for (const int32_t image : images) {
    const auto first = set.pixels.begin() + image * image_size;
    std::transform(first, first + image_size, std::back_inserter(batch.pixels),
                   [&](uint8_t pixel) { return standardised[pixel]; });
    batch.labels.push_back(set.labels[static_cast<size_t>(image)]);
  }
  return batch;
}

}  // namespace tearless::engine
