// The settings pages: docs/engine_settings.md is up to date, and the defaults on each page are those of its task.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "base/words.h"
#include "engine/run/run_options.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::settings_page_test {
namespace {

std::string printed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {test::program("tearless-engine").string(), "settings"});
  const test::Finished page = test::run({.arguments = arguments});
  EXPECT_EQ(page.code, 0) << page.errors;
  return page.output;
}

TEST(SettingsPage, IsWhatTheEnginePrints) {
  // Not EXPECT_EQ, which prints both pages and drowns the sentence.
  EXPECT_TRUE(printed({}) == test::read_text(test::source_root() / "docs/engine_settings.md"))
      << "docs/engine_settings.md is not of these settings; run build/bin/tearless-engine settings > "
         "docs/engine_settings.md";
}

/// The defaults on a page, by dotted key, for a task: "`1.0`; digits, parse `0.0`" is `0.0` for parse.
std::map<std::string, std::string> defaults_on(const std::string& page, const std::string& task) {
  const std::regex row("\\| `([^`]*)` \\| ([^|]*) \\| .*"), of_tasks(" (.*) (`[^`]*`|unset)");
  std::map<std::string, std::string> defaults;
  std::string section, of_task = task;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch cells;
    if (line.starts_with("## ")) of_task = line.starts_with("## task = ") ? line.substr(11, line.size() - 12) : task;
    if (line.starts_with("## derived")) break;
    if (line.starts_with("### ")) section = line.starts_with("### [") ? line.substr(5, line.size() - 6) + "." : "";
    if (of_task != task || !std::regex_match(line, cells, row)) continue;
    std::istringstream parts(cells[2].str());
    std::string& own = defaults[section + cells[1].str()];
    std::getline(parts, own, ';');
    for (std::string part; std::getline(parts, part, ';');) {
      std::smatch named;
      EXPECT_TRUE(std::regex_match(part, named, of_tasks)) << part;
      const std::vector<std::string> tasks = list_items(named[1].str());
      if (std::ranges::find(tasks, task) != tasks.end()) own = named[2].str();
    }
  }
  return defaults;
}

TEST(SettingsPage, HasTheDefaultsWithWhichARunOfTheTaskIsRead) {
  const std::string all = printed({});
  for (const auto& kind : engine::task_kinds()) {
    const std::string task(kind->name);
    SCOPED_TRACE(task);
    const auto own_page = defaults_on(printed({task}), task), whole_page = defaults_on(all, task);
    WrittenSettings written;
    written.values = {{"task", task}};
    engine::RunOptions options;
    read_settings(written, engine::description_of(options));
    const std::vector<DescribedField> fields = list_settings(engine::description_of(options));
    for (const DescribedField& field : fields) {
      if (field.key == "task") continue;  // what is written
      const std::string value = field.value.is_null() ? "unset" : "`" + toml_value(field.value) + "`";
      for (const auto& page : {own_page, whole_page}) {
        ASSERT_TRUE(page.contains(field.key)) << field.key;
        EXPECT_EQ(page.at(field.key), value) << field.key;
      }
    }
    EXPECT_EQ(own_page.size(), fields.size());
    EXPECT_EQ(own_page.at("task"), "`\"translate\"`");
  }
}

}  // namespace
}  // namespace tearless::settings_page_test
