// Prepared statements of one connection, kept for their next use: to prepare one takes longer than most queries of the
// store. Internal to harness/store.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/store/database.h"

namespace tearless::harness {

/// The statements of a connection that are not in use. REQUIRES: the connection outlives them.
class Statements {
 public:
  explicit Statements(const SQLite::Database& database) : database_(database) {}

  const SQLite::Database& database() const { return database_; }

  /// A statement of that text, not executed, with all parameters NULL. SQLite::Exception if SQLite rejects the text.
  std::unique_ptr<SQLite::Statement> take(const std::string& sql);
  void put_back(const std::string& sql, std::unique_ptr<SQLite::Statement> statement);

 private:
  const SQLite::Database& database_;
  std::unordered_map<std::string, std::vector<std::unique_ptr<SQLite::Statement>>> unused_;
};

/// One use of a statement.
class Statement {
 public:
  Statement(Statements& statements, std::string sql)
      : statements_(statements), sql_(std::move(sql)), statement_(statements.take(sql_)) {}
  ~Statement() { statements_.put_back(sql_, std::move(statement_)); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  template <class T>
  void bind(int index, const T& value) {
    statement_->bind(index, value);
  }
  void bind(int index, const std::optional<int64_t>& value) {
    value ? statement_->bind(index, *value) : statement_->bind(index);
  }
  bool executeStep() { return statement_->executeStep(); }
  int exec() { return statement_->exec(); }
  void reset() { statement_->reset(); }  // keeps what was bound
  SQLite::Column getColumn(int index) { return statement_->getColumn(index); }

 private:
  Statements& statements_;
  std::string sql_;
  std::unique_ptr<SQLite::Statement> statement_;
};

/// A SELECT of this program. If SQLite cannot run it, the database file is at fault, and the user is told so.
class Question : public Statement {
 public:
  Question(Statements& statements, const std::string& sql) try
      : Statement(statements, sql), database_(statements.database()) {
  } catch (const SQLite::Exception& error) {
    refuse_unusable(statements.database().getFilename(), error);
  }

  bool executeStep() {
    try {
      return Statement::executeStep();
    } catch (const SQLite::Exception& error) {
      refuse_unusable(database_.getFilename(), error);
    }
  }

 private:
  const SQLite::Database& database_;
};

/// The first column of all rows.
std::vector<std::string> text_column(Question& question);

}  // namespace tearless::harness
