#include "base/time.h"

#include <chrono>
#include <ctime>

namespace tearless {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[sizeof "2026-01-31T12:00:00Z"];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::optional<int64_t> seconds_of_utc(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (!end || *end != '\0') return std::nullopt;
  return ::timegm(&parts);
}

std::string local_time(const std::string& utc) {
  const std::optional<int64_t> seconds = seconds_of_utc(utc);
  if (!seconds) return utc;
  const std::time_t then = *seconds;
  std::tm parts{};
  ::localtime_r(&then, &parts);
  char text[sizeof "2026-01-31 13:00"];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tearless
