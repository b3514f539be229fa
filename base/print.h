// Printing for the commands. Arguments come from grid files, run folders and programs, so texts among them are made
// printable (base/utf8.h); only the format string may contain line breaks and terminal escapes.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/utf8.h"

namespace tearless {

template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

/// The type that an argument is formatted as: printable text, or an unchanged number. Join lists to a text first.
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

/// Formats as fmt::print() does, to `out`.
template <class... Args>
void print_to(std::FILE* out, fmt::format_string<Shown<Args>...> format, const Args&... arguments) {
  fmt::print(out, format, shown(arguments)...);
}

/// Formats as fmt::print() does, to standard output.
template <class... Args>
void print(fmt::format_string<Shown<Args>...> format, const Args&... arguments) {
  fmt::print(stdout, format, shown(arguments)...);
}

/// Appends to a text what print() prints.
template <class... Args>
void print_into(std::string& text, fmt::format_string<Shown<Args>...> format, const Args&... arguments) {
  text += fmt::format(format, shown(arguments)...);
}

/// Prints a sentence beside a command's output as a line on standard error, made printable.
void notice(const std::string& sentence);

/// The lines of JSON that commands print. Bytes that are not UTF-8 become U+FFFD, what a terminal might obey is
/// escaped.
std::string json_text(const nlohmann::json& value);

/// Prints them to standard output.
void print_json(const nlohmann::json& value);

}  // namespace tearless
