#include "harness/archive/archive.h"

#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr const char* kParts[] = {"artifact", "runs", "sweeps"};
constexpr size_t kBlock = 512;                  // of a tar file
constexpr uint64_t kAlwaysUnpacked = 64 << 20;  // bytes that any archive may hold
constexpr uint64_t kMaxRatio = 200;             // results become ten to fifty times smaller
constexpr uint64_t kAlwaysFiles = 2000;         // that any archive may hold
constexpr uint64_t kBytesForFile = 40;          // of the archive; the smallest runs have 53, others hundreds

// The header of a file in a tar file, as POSIX has it. Numbers are octal digits, texts end with a zero or fill up.
struct TarHeader {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
      user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
static_assert(sizeof(TarHeader) == kBlock);

template <size_t N>
void put(char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), std::min(text.size(), N));
}

template <size_t N>
std::string_view text_in(const char (&field)[N]) {
  return {field, ::strnlen(field, N)};
}

std::string checksum_of(const TarHeader& header) {
  TarHeader blank = header;
  std::fill(std::begin(blank.checksum), std::end(blank.checksum), ' ');
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&blank);
  return fmt::format("{:06o}", std::accumulate(bytes, bytes + kBlock, 0u));
}

// --- writing -------------------------------------------------------------------------------------------------------

TarHeader header_of(const std::string& name, uint64_t size) {
  TarHeader header{};
  // A long name is divided at a slash.
  const size_t cut = name.size() <= sizeof header.name ? 0 : name.find('/', name.size() - sizeof header.name - 1);
  if (cut > sizeof header.prefix || size >= uint64_t{1} << 33) {
    fail("{} has a name or a size that does not fit into an archive; copy to a folder instead", name);
  }
  put(header.prefix, std::string_view(name).substr(0, cut));
  put(header.name, std::string_view(name).substr(cut == 0 ? 0 : cut + 1));
  put(header.mode, "0000644");
  put(header.uid, "0000000");
  put(header.gid, "0000000");
  put(header.size, fmt::format("{:011o}", size));
  put(header.mtime, "00000000000");
  header.type = '0';
  put(header.magic, "ustar");
  put(header.version, "00");
  put(header.checksum, checksum_of(header));
  return header;
}

// What is appended becomes gzip text.
class Gzip {
 public:
  Gzip() {
    constexpr int kGzip = 16, kWindow = 15, kMemory = 9;  // as zlib.h says
    if (deflateInit2(&stream_, Z_BEST_COMPRESSION, Z_DEFLATED, kWindow + kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Gzip() { deflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  void append(std::string_view bytes) { deflate_all(bytes, Z_NO_FLUSH); }
  std::string finish() {
    deflate_all("", Z_FINISH);
    return std::move(text_);
  }

 private:
  void deflate_all(std::string_view bytes, int flush) {
    std::array<char, 1 << 16> room{};
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(room.data());
      stream_.avail_out = room.size();
      deflate(&stream_, flush);
      text_.append(room.data(), room.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
  std::string text_;
};

// --- reading -------------------------------------------------------------------------------------------------------

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> sentence, Args&&... args) {
  throw DamagedArchive(fmt::format(sentence, std::forward<Args>(args)...));
}

// A file in a tar file, named and measured as ustar, GNU tar or pax have it.
struct TarEntry {
  std::string name;
  uint64_t size = 0;
  char type = '0';
};

class TarReader {
 public:
  explicit TarReader(const fs::path& file)
      : file_(file),
        limit_(kAlwaysUnpacked + kMaxRatio * fs::file_size(file)),
        files_left_(kAlwaysFiles + fs::file_size(file) / kBytesForFile),
        in_(gzopen(file.c_str(), "rb")) {
    if (!in_) fail("cannot read {}: {}", file.string(), std::strerror(errno));
    if (gzdirect(in_.get())) {  // it is no gzip file
      fail("{} is no archive of results; --workspace takes a folder, or a file that tearless copy FILE.tar.gz has made",
           file_.string());
    }
  }

  // False at the end of the archive, which is read to the end of the file: only then are all bytes checked.
  bool next(TarEntry& entry) {
    Records own;  // of the file that follows
    for (TarHeader header{}; next_header(header);) {
      const bool is_gnu = header.magic[5] == ' ';  // its headers have times where ustar has the prefix
      const std::string prefix(is_gnu ? "" : text_in(header.prefix)), name(text_in(header.name));
      entry = {prefix.empty() ? name : prefix + "/" + name, number_in(text_in(header.size), 8), header.type};
      if (header.type == 'L') {
        own["path"] = content(entry).c_str();
      } else if (header.type == 'x' || header.type == 'g') {
        read_records(content(entry), header.type == 'x' ? own : global_);
      } else {
        own.insert(global_.begin(), global_.end());
        if (const auto path = own.find("path"); path != own.end()) entry.name = path->second;
        if (const auto size = own.find("size"); size != own.end()) entry.size = number_in(size->second, 10);
        return true;
      }
    }
    if (!own.empty()) refuse_damaged("it ends too early");
    return false;
  }

  std::string content(const TarEntry& entry) {
    count(entry.size);
    std::string bytes;
    std::array<char, kBlock> block{};
    while (bytes.size() < entry.size) {
      read(block.data(), kBlock);
      bytes.append(block.data(), std::min<uint64_t>(kBlock, entry.size - bytes.size()));
    }
    return bytes;
  }

 private:
  using Records = std::map<std::string, std::string>;  // of pax: key → value

  // False at the end of the archive.
  bool next_header(TarHeader& header) {
    count(2 * kBlock);  // with what the file is filled up with
    read(reinterpret_cast<char*>(&header), kBlock);
    const auto* const bytes = reinterpret_cast<const char*>(&header);
    if (std::all_of(bytes, bytes + kBlock, [](char byte) { return byte == 0; })) {
      for (std::array<char, 1 << 16> rest{}; gzread(in_.get(), rest.data(), rest.size()) > 0;) count(rest.size());
      require_sound();
      return false;
    }
    if (!text_in(header.magic).starts_with("ustar") || text_in(header.checksum).substr(0, 6) != checksum_of(header)) {
      refuse_damaged("it holds what is no file of a tar archive");
    }
    if (files_left_-- == 0) {
      refuse("{} holds more files than results of its size can be, and is not unpacked", file_.string());
    }
    return true;
  }

  uint64_t number_in(std::string_view digits, int base) const {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    if (error != std::errc()) refuse_damaged("a file in it has no size");
    return number;
  }

  // "LENGTH KEY=VALUE\n" each; LENGTH counts itself. Keys that say nothing of name and content mean nothing here.
  void read_records(std::string_view text, Records& records) const {
    while (!text.empty()) {
      const size_t space = text.find(' '), equals = text.find('=');
      const uint64_t length = number_in(text.substr(0, space), 10);
      if (space >= equals || equals >= length || length > text.size() || text[length - 1] != '\n') {
        refuse_damaged("a pax header in it cannot be read");
      }
      const std::string key(text.substr(space + 1, equals - space - 1));
      if (key.starts_with("GNU.sparse")) refuse("{} holds sparse files; pack it without --sparse", file_.string());
      records[key] = text.substr(equals + 1, length - equals - 2);
      text.remove_prefix(length);
    }
  }

  [[noreturn]] void refuse_damaged(std::string_view why) const {
    refuse("{} is cut or damaged ({}); get it again from where it came", file_.string(), why);
  }

  void require_sound() const {
    int error = Z_OK;
    gzerror(in_.get(), &error);
    if (error != Z_OK) refuse_damaged(error == Z_BUF_ERROR ? "it ends too early" : "it cannot be unpacked");
  }

  void count(uint64_t bytes) {
    read_ += bytes;
    if (bytes > limit_ || read_ > limit_) {
      refuse("{} holds more than {} MB, too much for results of its size, and is not unpacked", file_.string(),
             limit_ >> 20);
    }
  }

  void read(char* into, size_t bytes) {
    const int got = gzread(in_.get(), into, static_cast<unsigned>(bytes));
    if (got == static_cast<int>(bytes)) return;
    require_sound();
    refuse_damaged("it ends too early");
  }

  struct Close {
    void operator()(gzFile_s* file) const { gzclose_r(file); }
  };
  fs::path file_;
  uint64_t limit_, read_ = 0, files_left_;
  Records global_ = {};
  std::unique_ptr<gzFile_s, Close> in_;
};

// Where a file lies below one of kParts; empty for a name that leads elsewhere, or may, or that pack() has not made.
fs::path place_in_results(const std::string& name) {
  if (name.size() > sizeof TarHeader::prefix + sizeof TarHeader::name || name.find('\0') != std::string::npos)
    return {};
  const fs::path place = fs::path(name).lexically_normal();
  if (place.is_absolute() || std::ranges::find(place, "..") != place.end()) return {};
  const std::string part = place.begin() == place.end() ? "" : place.begin()->string();
  const bool is_below = place.has_parent_path() && place.has_filename();
  return is_below && std::ranges::find(kParts, part) != std::end(kParts) ? place : fs::path();
}

}  // namespace

bool has_archive_name(const fs::path& file) { return file.string().ends_with(".tar.gz"); }

std::vector<std::string> archived_files(const fs::path& workspace) {
  std::vector<std::string> names;
  for (const char* part : kParts) {
    if (!fs::exists(workspace / part)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(workspace / part)) {
      if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(workspace).string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string pack(const fs::path& workspace) {
  Gzip gzip;
  for (const std::string& name : archived_files(workspace)) {
    const std::string bytes = read_file(workspace / name);
    const TarHeader header = header_of(name, bytes.size());
    gzip.append({reinterpret_cast<const char*>(&header), kBlock});
    gzip.append(bytes);
    gzip.append(std::string((kBlock - bytes.size() % kBlock) % kBlock, '\0'));
  }
  gzip.append(std::string(2 * kBlock, '\0'));
  return gzip.finish();
}

void unpack(const fs::path& archive, const fs::path& folder) {
  for (const bool writes : {false, true}) {  // nothing of what is refused
    TarReader reader(archive);
    for (TarEntry entry; reader.next(entry);) {
      if (entry.type == '5') continue;  // a folder: made where a file needs it
      const fs::path place = place_in_results(entry.name);
      if (place.empty() || (entry.type != '0' && entry.type != '\0')) {
        refuse("{} holds {}, which is {}; an archive of results has plain files below {}/ alone", archive.string(),
               shell_word(entry.name), place.empty() ? "not in these folders" : "no plain file",
               fmt::join(kParts, "/, "));
      }
      const std::string bytes = reader.content(entry);
      if (!writes) continue;
      if (fs::exists(folder / place)) refuse("{} holds {} twice; make it again", archive.string(), place.string());
      make_folders_unsynced((folder / place).parent_path());
      replace_unsynced(folder / place, bytes);
    }
  }
}

}  // namespace tearless::harness
