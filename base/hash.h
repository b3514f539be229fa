// SHA-256, for identities and for noticing changed files. Not for secrets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace tearless {

/// Feeds bytes piecemeal.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::string_view bytes);
  std::string hex() const;  ///< of all bytes so far: 64 lower-case hex digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::string_view bytes);
/// UserError where the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

/// FNV-1a, 32 bits: turns names into stable small numbers (random streams).
constexpr uint32_t fnv1a32(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace tearless
