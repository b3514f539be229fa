#include "base/print.h"

#include <nlohmann/json.hpp>

#include "base/output.h"

namespace tearless {

void notice(const std::string& sentence) {
  std::fflush(stdout);  // keeps the order if both go to the same terminal or file
  print_error(printable(sentence));
}

std::string json_text(const nlohmann::json& value) {
  return printable_json(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

void print_json(const nlohmann::json& value) { fmt::print(stdout, "{}", json_text(value)); }

}  // namespace tearless
