#include "base/hash.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

#include "base/error.h"

namespace tearless {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  // Copied: EVP_DigestInit_ex searches for the algorithm by its name, which takes longer than hashing a short text.
  static const State empty{.context = [] {
    EVP_MD_CTX* const context = EVP_MD_CTX_new();
    EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
    return context;
  }()};
  EVP_MD_CTX_copy_ex(state_->context, empty.context);
}
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) { EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()); }

std::string Sha256::hex() const {
  State so_far;  // a copy: EVP_DigestFinal_ex invalidates the context
  EVP_MD_CTX_copy_ex(so_far.context, state_->context);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(so_far.context, digest, &size);
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : std::span(digest, size)) {
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
  std::vector<char> buffer(1 << 16);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    hash.update({buffer.data(), static_cast<size_t>(file.gcount())});
  }
  if (file.bad()) fail_errno("read", path);
  return hash.hex();
}

}  // namespace tearless
