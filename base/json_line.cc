#include "base/json_line.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <cmath>
#include <string>

namespace tearless {
namespace {

const JsonValue& member_of(const JsonValue& object, std::string_view key) {
  if (const JsonValue* member = find_member(object, key)) return *member;
  throw JsonLineError(fmt::format("\"{}\" is missing", key));
}

std::string_view text_in(const JsonValue& value, std::string_view key) {
  if (!value.IsString()) throw JsonLineError(fmt::format("\"{}\" is not a text", key));
  return {value.GetString(), value.GetStringLength()};
}

int64_t number_in(const JsonValue& value, std::string_view key) {
  if (value.IsInt64()) return value.GetInt64();
  // 1e6, or 1234567.0 of a language that divides: whole, and exact as a double
  if (value.IsDouble() && std::abs(value.GetDouble()) < 0x1p53 && std::trunc(value.GetDouble()) == value.GetDouble()) {
    return static_cast<int64_t>(value.GetDouble());
  }
  throw JsonLineError(fmt::format("\"{}\" is not a whole number", key));
}

}  // namespace

const JsonValue& JsonLineParser::parse(std::string_view line) {
  document_.SetNull();
  allocator_.Clear();
  // Iterative: the recursive parser would overflow the stack on a line of 100,000 brackets.
  document_.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(line.data(), line.size());
  if (document_.HasParseError()) {
    throw JsonLineError(fmt::format("at byte {}: {}", document_.GetErrorOffset() + 1,
                                    rapidjson::GetParseError_En(document_.GetParseError())));
  }
  if (!document_.IsObject()) throw JsonLineError("it is not an object");
  return document_;
}

const JsonValue* find_member(const JsonValue& object, std::string_view key) {
  const auto member =
      object.FindMember(JsonValue(rapidjson::StringRef(key.data(), static_cast<rapidjson::SizeType>(key.size()))));
  return member == object.MemberEnd() ? nullptr : &member->value;
}

std::string_view as_text(const JsonValue& value) {
  if (!value.IsString()) throw JsonLineError("a value is not a text");
  return {value.GetString(), value.GetStringLength()};
}

std::string_view text_at(const JsonValue& object, std::string_view key) { return text_in(member_of(object, key), key); }

std::string_view text_at(const JsonValue& object, std::string_view key, std::string_view otherwise) {
  const JsonValue* member = find_member(object, key);
  return member ? text_in(*member, key) : otherwise;
}

JsonValue::ConstObject object_at(const JsonValue& object, std::string_view key) {
  const JsonValue& member = member_of(object, key);
  if (!member.IsObject()) throw JsonLineError(fmt::format("\"{}\" is not an object", key));
  return member.GetObject();
}

int64_t number_at(const JsonValue& object, std::string_view key) { return number_in(member_of(object, key), key); }

int64_t number_at(const JsonValue& object, std::string_view key, int64_t otherwise) {
  const JsonValue* member = find_member(object, key);
  return member ? number_in(*member, key) : otherwise;
}

}  // namespace tearless
