// The JSON form of a struct, by its members.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

/// An unset value is null.
template <class T>
requires(!nlohmann::detail::is_basic_json<T>::value) struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(nlohmann::json& j, const std::optional<T>& value) {
    j = value ? nlohmann::json(*value) : nlohmann::json();
  }
  static void from_json(const nlohmann::json& j, std::optional<T>& value) {
    value = j.is_null() ? std::nullopt : std::optional(j.get<T>());
  }
};

#define TEARLESS_UNPACKED(...) __VA_ARGS__
#define TEARLESS_OPTIONAL_TO(member)                                                        \
  if (nlohmann::json value = nlohmann_json_t.member; value != nlohmann::json(unset.member)) \
    nlohmann_json_j[#member] = std::move(value);
#define TEARLESS_OPTIONAL_FROM(member)                                                    \
  if (const auto found = nlohmann_json_j.find(#member); found != nlohmann_json_j.end()) { \
    found->get_to(nlohmann_json_t.member);                                                \
  }

/// NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE for `members`, and for `optional` ones, which the JSON has where they are not as
/// in a new struct: TEARLESS_JSON(Type, (a, b), (c, d)).
#define TEARLESS_JSON(Type, members, optional)                                                    \
  inline void to_json(nlohmann::json& nlohmann_json_j, const Type& nlohmann_json_t) {             \
    const Type unset{};                                                                           \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, TEARLESS_UNPACKED members))        \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(TEARLESS_OPTIONAL_TO, TEARLESS_UNPACKED optional))   \
  }                                                                                               \
  inline void from_json(const nlohmann::json& nlohmann_json_j, Type& nlohmann_json_t) {           \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_FROM, TEARLESS_UNPACKED members))      \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(TEARLESS_OPTIONAL_FROM, TEARLESS_UNPACKED optional)) \
  }
