#include "harness/serve/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace tearless::harness {
namespace {

std::string random_hex() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) {
    throw MachineError(fmt::format("the kernel gives no random bytes: {}; try again", std::strerror(errno)));
  }
  std::string hex;
  for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

/// In a time that does not depend on where they differ.
bool is_same(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned different = 0;
  for (size_t i = 0; i < left.size(); ++i) different |= static_cast<unsigned char>(left[i] ^ right[i]);
  return different == 0;
}

}  // namespace

Access::Access(const std::string& place)
    : token_(random_hex()), name_("tearless-" + sha256(place).substr(0, 8)), secret_(random_hex()) {}

bool Access::is_token(std::string_view text) const { return is_same(text, token_); }

std::string Access::cookie() const { return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax", name_, secret_); }

bool Access::has_cookie(std::string_view header) const {
  const std::string wanted = fmt::format("{}={}", name_, secret_);
  while (!header.empty()) {
    const std::string_view one = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), one.size() + 1));
    const size_t begin = one.find_first_not_of(' ');
    if (begin != std::string_view::npos && is_same(one.substr(begin), wanted)) return true;
  }
  return false;
}

bool is_local_host(std::string_view host) {
  for (const std::string_view name : {"localhost", "127.0.0.1", "[::1]"}) {
    if (!host.starts_with(name)) continue;
    const std::string_view port = host.substr(name.size());
    if (port.empty()) return true;
    const bool is_number =
        port.size() > 1 && std::ranges::all_of(port.substr(1), [](char c) { return c >= '0' && c <= '9'; });
    return port.front() == ':' && is_number;
  }
  return false;
}

}  // namespace tearless::harness
