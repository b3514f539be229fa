// Bytes as text, RFC 4648 with padding.
#pragma once

#include <string>
#include <string_view>

namespace tearless {

std::string base64(std::string_view bytes);

}  // namespace tearless
