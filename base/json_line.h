// Files and streams with one line of JSON a run, read with RapidJSON: of 100,000 runs, nlohmann's trees would take most
// of the time of a plan or a submission. Everything else uses nlohmann::json.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tearless {

using JsonValue = rapidjson::Value;

/// A line that is no JSON, or lacks a member, or has one of another type. what(): one phrase, for a message.
class JsonLineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses lines one after another, in memory of its own: to allocate and free what a line needs would take as long as
/// to parse it.
class JsonLineParser {
 public:
  JsonLineParser() : memory_(1 << 16), allocator_(memory_.data(), memory_.size()), document_(&allocator_) {}
  JsonLineParser(const JsonLineParser&) = delete;
  JsonLineParser& operator=(const JsonLineParser&) = delete;

  /// The object that is the line. JsonLineError for anything else. The object, and texts of it, are valid until the
  /// next call.
  const JsonValue& parse(std::string_view line);

 private:
  std::vector<char> memory_;  // a longer line allocates more
  rapidjson::MemoryPoolAllocator<> allocator_;
  rapidjson::Document document_;
};

/// Null if there is no such member.
const JsonValue* find_member(const JsonValue& object, std::string_view key);

/// A text as it stands there. JsonLineError if `value` is none.
std::string_view as_text(const JsonValue& value);

// The member `key` of an object. JsonLineError if it is of another type, and, without `otherwise`, if it is missing.
std::string_view text_at(const JsonValue& object, std::string_view key);
std::string_view text_at(const JsonValue& object, std::string_view key, std::string_view otherwise);
JsonValue::ConstObject object_at(const JsonValue& object, std::string_view key);
int64_t number_at(const JsonValue& object, std::string_view key);
int64_t number_at(const JsonValue& object, std::string_view key, int64_t otherwise);

}  // namespace tearless
