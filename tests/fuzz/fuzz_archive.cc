#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>

#include "base/error.h"
#include "harness/archive/archive.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace tearless::fuzz {
namespace {

namespace fs = std::filesystem;

// With the checksums that its headers ought to have: else no change of a header would come any further.
std::string with_checksums(std::string tar) {
  constexpr size_t kBlock = 512, kChecksum = 148, kMagic = 257;
  for (size_t at = 0; at + kBlock <= tar.size(); at += kBlock) {
    if (tar.compare(at + kMagic, 5, "ustar") != 0) continue;
    std::fill_n(tar.begin() + static_cast<long>(at + kChecksum), 8, ' ');
    const auto* const header = reinterpret_cast<const unsigned char*>(tar.data() + at);
    std::string digits(6, '0');
    for (unsigned sum = std::accumulate(header, header + kBlock, 0u), i = 6; i-- > 0; sum /= 8) {
      digits[i] = static_cast<char>('0' + sum % 8);
    }
    tar.replace(at + kChecksum, 7, digits + '\0');
  }
  return tar;
}

void write_gzip(const fs::path& file, const std::string& text) {
  const gzFile out = gzopen(file.c_str(), "wb1");
  if (!text.empty()) gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
}

}  // namespace

/// The first byte says whether the others are the file, or the tar file within it.
int fuzz_archive(const uint8_t* data, size_t size) {
  static const test::TempFolder folder;
  const fs::path file = folder / "a.tar.gz", out = folder / "out";
  std::string_view bytes = text_of(data, size);
  if (take_byte(bytes) % 2 == 0) {
    write_new(file, bytes);
  } else {
    write_gzip(file, with_checksums(std::string(bytes)));
  }
  try {
    harness::unpack(file, out);
  } catch (const UserError&) {
  }
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    require(entry.path() == file || entry.path() == out, "something lies beside the folder");
  }
  if (!fs::exists(out)) return 0;
  for (const auto& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename();
    require(name == "runs" || name == "sweeps", "something else than runs and sweeps was unpacked");
  }
  fs::remove_all(out);
  return 0;
}

}  // namespace tearless::fuzz
