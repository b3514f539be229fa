#include <array>

#include "base/error.h"
#include "engine/data/digits.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace tearless::fuzz {

using namespace tearless::engine;

/// The first byte says which of the four files the others replace; the other files are intact.
int fuzz_digits(const uint8_t* data, size_t size) {
  static const test::TempFolder folder;
  static const std::array<std::string, 4> intact = {std::string("\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x02"
                                                                "abcdefghijkl",
                                                                28),
                                                    std::string("\0\0\x08\x01\0\0\0\x03\x05\x00\x09", 11),
                                                    std::string("\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02"
                                                                "mnop",
                                                                20),
                                                    std::string("\0\0\x08\x01\0\0\0\x01\x07", 9)};
  std::string_view bytes = text_of(data, size);
  const size_t replaced = take_byte(bytes) % intact.size();
  std::array<std::string, 4> files;
  for (size_t i = 0; i < files.size(); ++i) {
    files[i] = (folder / std::to_string(i)).string();
    write_new(files[i], i == replaced ? bytes : std::string_view(intact[i]));
  }
  const DigitsOptions options{.train_images = files[0],
                              .train_labels = files[1],
                              .test_images = files[2],
                              .test_labels = files[3],
                              .dev_first = 1};
  try {
    const engine::Digits digits = read_digits(options);
    const DigitSizes sizes = read_digit_sizes(options);
    require(sizes.height == digits.height && sizes.width == digits.width && sizes.train == digits.train.size() &&
                sizes.dev == digits.dev.size() && sizes.test == digits.test.size(),
            "the headers say other sizes than the files have");
    for (const DigitSet* set : {&digits.train, &digits.dev, &digits.test}) {
      const auto batch =
          digit_batch(digits, *set, std::array<int32_t, 1>{static_cast<int32_t>(set->size() - 1)}, options);
      require(batch.pixels.size() == static_cast<size_t>(digits.height * digits.width), "an image lacks pixels");
    }
  } catch (const UserError&) {
  }
  return 0;
}

}  // namespace tearless::fuzz
