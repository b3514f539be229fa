// What the commands print. The format is ours and the only thing that may move the cursor; the arguments come from grid
// files, run folders and programs, and are made printable.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/utf8.h"

namespace tearless::harness {

template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

/// What becomes of an argument: text is made printable, a number stays one. A list is to be joined to a text first.
template <class T>
requires Text<T> || std::is_arithmetic_v<T>
using Shown = std::conditional_t<Text<T>, std::string, T>;

template <class T>
Shown<T> shown(const T& value) {
  if constexpr (Text<T>) {
    return printable(value);
  } else {
    return value;
  }
}

template <class... Args>
void print_to(std::FILE* out, fmt::format_string<Shown<Args>...> format, const Args&... arguments) {
  if (out == stderr) std::fflush(stdout);  // where both go to one place they stay in order
  fmt::print(out, format, shown(arguments)...);
}

/// To standard output.
template <class... Args>
void print(fmt::format_string<Shown<Args>...> format, const Args&... arguments) {
  fmt::print(stdout, format, shown(arguments)...);
}

/// To standard output, for programs: bytes that are not UTF-8 become U+FFFD.
void print_json(const nlohmann::json& value);

}  // namespace tearless::harness
