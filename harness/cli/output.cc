#include "harness/cli/output.h"

namespace tearless::harness {

void notice(const std::string& sentence) { print_to(stderr, "{}\n", sentence); }

void print_json(const nlohmann::json& value) {
  fmt::print(stdout, "{}\n", value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace tearless::harness
