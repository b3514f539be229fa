// Rows of texts, as commands print them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tearless::harness {

/// Prints lines of cells to standard output, each column as wide as its widest cell. The first line is the header.
/// Texts are made printable.
void print_columns(std::vector<std::vector<std::string>> lines);

/// Prints lines of cells to standard output as CSV (RFC 4180). The first line is the header; its names are made unique,
/// and texts printable.
void print_csv(std::vector<std::vector<std::string>> lines);

/// A value as the text of a cell: "" for null, numbers with all their digits, or with so many significant ones.
std::string value_text(const nlohmann::json& value, int digits = 0);

/// Makes the names of columns unique: the second column `run` becomes `run:2`.
std::vector<std::string> distinct_names(std::vector<std::string> columns);

}  // namespace tearless::harness
