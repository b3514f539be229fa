#include "base/hash.h"

// The EVP interface, which has replaced these functions, loads providers and reads openssl.cnf first: more than a
// millisecond for each process, and a sweep starts two for each run.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/error.h"

namespace tearless {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) { SHA256_Update(&state_->context, bytes.data(), bytes.size()); }

std::string Sha256::hex() const {
  SHA256_CTX so_far = state_->context;  // SHA256_Final ends it
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_Final(digest.data(), &so_far);
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text.push_back(kHexDigits[byte >> 4]);
    text.push_back(kHexDigits[byte & 15]);
  }
  return text;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_errno("read", path);
  Sha256 hash;
  constexpr size_t kBytes = 1 << 16;
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBytes);  // most files are smaller, and there are many
  while (file.read(buffer.get(), kBytes) || file.gcount() > 0) {
    hash.update({buffer.get(), static_cast<size_t>(file.gcount())});
  }
  if (file.bad()) fail_errno("read", path);
  return hash.hex();
}

}  // namespace tearless
