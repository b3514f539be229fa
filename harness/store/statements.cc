#include "harness/store/statements.h"

namespace tearless::harness {

std::unique_ptr<SQLite::Statement> Statements::take(const std::string& sql) {
  const auto unused = unused_.find(sql);
  if (unused == unused_.end() || unused->second.empty()) return std::make_unique<SQLite::Statement>(database_, sql);
  std::unique_ptr<SQLite::Statement> statement = std::move(unused->second.back());
  unused->second.pop_back();
  return statement;
}

void Statements::put_back(const std::string& sql, std::unique_ptr<SQLite::Statement> statement) {
  statement->tryReset();  // it returns the error of the last step, which the user of the statement has seen
  statement->clearBindings();
  unused_[sql].push_back(std::move(statement));
}

std::vector<std::string> text_column(Question& question) {
  std::vector<std::string> texts;
  while (question.executeStep()) texts.push_back(question.getColumn(0).getString());
  return texts;
}

}  // namespace tearless::harness
