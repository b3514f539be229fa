#include <string>

#include "base/error.h"
#include "harness/service/protocol.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {

int fuzz_request(const uint8_t* data, size_t size) {
  harness::Request request;
  try {
    request = harness::request_from(text_of(data, size));
  } catch (const UserError&) {
    return 0;
  }
  for (const std::vector<std::string>& names : {request.sweeps, request.runs}) {
    for (const std::string& name : names) {
      require(!name.empty() && name.find('/') == std::string::npos && name != "..", "an id leads out of its folder");
    }
  }
  const std::string again = to_json(request).dump(-1, ' ', false, nlohmann::json::error_handler_t::strict);
  require(to_json(harness::request_from(again)).dump() == again, "a request differs after it was written and read");
  return 0;
}

}  // namespace tearless::fuzz
