// Statements of SQL with their values. Internal to harness/store.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace tearless::harness {

/// The prepared statements of one connection, kept for their next use: to prepare one takes longer than most queries of
/// the store. REQUIRES: the connection outlives them.
class Statements {
 public:
  explicit Statements(const SQLite::Database& database) : database_(database) {}

  const SQLite::Database& database() const { return database_; }

  /// A statement of that text that nobody else uses, not executed, with all parameters NULL.
  std::shared_ptr<SQLite::Statement> take(const std::string& sql);

 private:
  const SQLite::Database& database_;
  std::unordered_map<std::string, std::shared_ptr<SQLite::Statement>> prepared_;
};

/// One use of a statement, with `values` for its parameters; an unset optional is NULL. If SQLite cannot prepare it or
/// cannot read, the database file is at fault, and the user is told so (refuse_unusable()). Of a write that fails,
/// Store::in_transaction() tells.
class Statement {
 public:
  template <class... Values>
  Statement(Statements& statements, const std::string& sql, const Values&... values)
      : database_(statements.database()), statement_(statements.take(sql)) {
    int index = 0;
    (bind(++index, values), ...);
  }
  ~Statement() { statement_->tryReset(); }  // it returns the error of the last step, which was thrown already
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// True if there is a row, or another one.
  bool step();
  SQLite::Column operator[](int column) { return statement_->getColumn(column); }

  /// Executes a statement that changes rows; returns how many.
  int write() { return statement_->exec(); }

 private:
  template <class Value>
  void bind(int index, const Value& value) {
    if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      statement_->bind(index, std::string(std::string_view(value)));
    } else if constexpr (std::is_arithmetic_v<Value>) {
      statement_->bind(index, value);
    } else if (value) {
      bind(index, *value);
    }
  }

  const SQLite::Database& database_;
  std::shared_ptr<SQLite::Statement> statement_;
};

/// The first column of all rows.
std::vector<std::string> text_column(Statement& statement);

}  // namespace tearless::harness
