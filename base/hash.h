// Hashes: SHA-256 for run ids and file checksums, FNV-1a for small numbers derived from names. Not for secrets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace tearless {

/// Incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::string_view bytes);

  /// The digest of all bytes so far, as 64 lower-case hex digits. More bytes may follow.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The SHA-256 of `bytes`, as 64 lower-case hex digits.
std::string sha256(std::string_view bytes);

/// The SHA-256 of a file's content. UserError if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

/// FNV-1a, 32 bits. Derives the number of a random stream from its name.
constexpr uint32_t fnv1a32(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace tearless
