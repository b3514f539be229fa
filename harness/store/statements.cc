#include "harness/store/statements.h"

#include "harness/store/database.h"

namespace tearless::harness {

std::shared_ptr<SQLite::Statement> Statements::take(const std::string& sql) {
  try {
    std::shared_ptr<SQLite::Statement>& prepared = prepared_[sql];
    const bool in_use = prepared.use_count() > 1;
    if (!prepared || in_use) prepared = std::make_shared<SQLite::Statement>(database_, sql);
    prepared->clearBindings();
    return prepared;
  } catch (const SQLite::Exception& error) {
    refuse_unusable(database_.getFilename(), error);
  }
}

bool Statement::step() {
  try {
    return statement_->executeStep();
  } catch (const SQLite::Exception& error) {
    refuse_unusable(database_.getFilename(), error);
  }
}

std::vector<std::string> text_column(Statement& statement) {
  std::vector<std::string> texts;
  while (statement.step()) texts.push_back(statement[0]);
  return texts;
}

}  // namespace tearless::harness
