// Who may see the pages of `tearless serve`: whoever has the address that it printed. The address has a token; for it a
// browser gets a cookie, so that the token stays neither in the address bar nor in a history that is shared.
#pragma once

#include <string>
#include <string_view>

namespace tearless::harness {

class Access {
 public:
  /// With a new token and a new secret for the cookie. `place`: what tells this server from others on the same host,
  /// which a browser sends the same cookies. MachineError if the kernel gives no random bytes.
  explicit Access(const std::string& place);

  /// 128 bits as hex digits.
  const std::string& token() const { return token_; }
  bool is_token(std::string_view text) const;

  /// The value of Set-Cookie.
  std::string cookie() const;
  /// Whether a header Cookie has it.
  bool has_cookie(std::string_view header) const;

 private:
  std::string token_, name_, secret_;
};

/// True for a header Host that names this machine by localhost, 127.0.0.1 or [::1], with any port or none. A page of
/// another site, whose name was made to lead here, has that name there.
bool is_local_host(std::string_view host);

}  // namespace tearless::harness
