// Rows of texts, as commands print them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tearless::harness {

/// Lines of cells as a text, each column as wide as its widest cell. The first line is the header. Texts are made
/// printable. What is wider than `limit` is in parts, each with the first column; 0: in one.
std::string text_of_columns(std::vector<std::vector<std::string>> lines, size_t limit = 0);

/// Prints it to standard output.
void print_columns(std::vector<std::vector<std::string>> lines, size_t limit = 0);

/// The columns of each part of what is printed in at most `limit` characters (0: all in one): the first `labels`, and
/// others as long as they fit, at least one.
std::vector<std::vector<size_t>> parts_of_columns(const std::vector<size_t>& widths, size_t labels, size_t gap,
                                                  size_t limit);

/// The width of the widest line that print_columns() prints of these.
size_t width_of(const std::vector<std::vector<std::string>>& lines);

/// Spreadsheets read text that begins with = + - or @ as a formula. Other readers of CSV want it as it is.
enum class Formulas { kAsTheyAre, kMadeText };

/// A line of a CSV file (RFC 4180) with its end. Texts are made printable and quoted where they must be. With kMadeText
/// those that are no number and begin as a formula get an apostrophe in front.
std::string csv_line(const std::vector<std::string>& cells, Formulas formulas);
/// The same with distinct_names().
std::string csv_header(std::vector<std::string> names, Formulas formulas);

/// Prints lines of cells to standard output as CSV. The first line is the header.
void print_csv(const std::vector<std::vector<std::string>>& lines, Formulas formulas);

/// A value as the text of a cell: "" for null, numbers with all their digits, or with so many significant ones. Whole
/// numbers have all of them, and no exponent below 1e15.
std::string value_text(const nlohmann::json& value, int digits = 0);

/// Makes the names of columns unique: the second column `run` becomes `run:2`.
std::vector<std::string> distinct_names(std::vector<std::string> columns);

}  // namespace tearless::harness
