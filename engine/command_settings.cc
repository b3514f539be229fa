// tearless-engine settings: prints docs/engine_settings.md, made from the option structs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/derived/derived_kind.h"
#include "engine/run/run_options.h"

namespace tearless::engine {
namespace {

std::string numbers_of(const DescribedField& f) {
  const bool low = std::isfinite(f.field.min);
  const bool high = std::isfinite(f.field.max);
  if (low && high) return fmt::format("{} … {}", f.field.min, f.field.max);
  if (low) return fmt::format("≥ {}", f.field.min);
  if (high) return fmt::format("≤ {}", f.field.max);
  return f.type;
}

std::string limits(const DescribedField& f) {
  if (!f.field.choices.empty()) return fmt::format("{}", fmt::join(f.field.choices, ", "));
  if (f.field.unset_word.empty()) return numbers_of(f);
  return fmt::format("{}, or \"{}\"", numbers_of(f), f.field.unset_word);
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\|");
  return text;
}

std::string default_text(const nlohmann::json& value) {
  return value.is_null() ? "unset" : "`" + toml_value(value) + "`";
}

/// The settings that every task has, with the defaults of one.
std::vector<DescribedField> common_settings(std::string_view task) {
  RunOptions options(task);
  std::vector<DescribedField> fields = list_settings([&](SettingsVisitor& v) { describe_common(v, options); });
  fields.front().value = kDefaultTask;
  return fields;
}

/// The default of a setting that every task has: "`1.0`; parse `0.0`".
std::string common_default(const std::vector<std::pair<std::string_view, std::vector<DescribedField>>>& of_tasks,
                           size_t index) {
  std::vector<std::pair<std::string, std::string>> texts;  // each with the tasks that have it
  for (const auto& [task, fields] : of_tasks) {
    const std::string text = default_text(fields[index].value);
    auto same = std::ranges::find(texts, text, &std::pair<std::string, std::string>::first);
    if (same == texts.end()) same = texts.insert(texts.end(), {text, ""});
    same->second.append(same->second.empty() ? "" : ", ").append(task);
  }
  std::string all = texts.front().first;
  for (size_t i = 1; i < texts.size(); ++i) all += fmt::format("; {} {}", texts[i].second, texts[i].first);
  return all;
}

/// Prints the settings as tables, one for each section. `default_of`: of the field at an index.
void print_sections(const std::vector<DescribedField>& fields, const std::function<std::string(size_t)>& default_of) {
  std::optional<std::string> section;
  for (size_t i = 0; i < fields.size(); ++i) {
    const DescribedField& f = fields[i];
    const size_t dot = f.key.rfind('.');
    const std::string head = dot == std::string::npos ? "" : f.key.substr(0, dot);
    if (section != head) {
      section = head;
      fmt::print("\n### {}\n\n| key | default | values | meaning |\n|---|---|---|---|\n",
                 head.empty() ? "At the top" : "[" + head + "]");
    }
    fmt::print("| `{}` | {} | {} | {}{} |\n", f.field.key, default_of(i), cell(limits(f)),
               cell(std::string(f.field.meaning)), f.field.identity == Identity::kLocal ? " *(local)*" : "");
  }
}

void print_sections(const std::vector<DescribedField>& fields) {
  print_sections(fields, [&](size_t i) { return default_text(fields[i].value); });
}

/// Prints the settings of one task, or with "" of all, and those that every task has.
void print_page(std::string_view task) {
  for (const auto& kind : task_kinds()) {
    if (!task.empty() && kind->name != task) continue;
    fmt::print("\n## task = \"{}\"\n\n{}.\n", kind->name, kind->meaning);
    const std::unique_ptr<TaskKind> of_task = kind->clone();
    print_sections(list_settings([&](SettingsVisitor& v) { of_task->describe_own(v); }));
  }
  fmt::print("\n## Every task\n");
  if (!task.empty()) return print_sections(common_settings(task));
  std::vector<std::pair<std::string_view, std::vector<DescribedField>>> of_tasks;
  for (const auto& kind : task_kinds()) of_tasks.emplace_back(kind->name, common_settings(kind->name));
  print_sections(of_tasks.front().second, [&](size_t i) { return common_default(of_tasks, i); });
  for (const auto& kind : derived_kinds()) {
    const std::unique_ptr<DerivedKind> described = kind->clone();
    fmt::print("\n## derived.kind = \"{}\"\n\nA derived run {}. A grid asks for it with [derived.NAME].\n", kind->name,
               kind->meaning);
    print_sections(list_settings([&](SettingsVisitor& v) { v.table_of("derived", [&] { described->describe(v); }); }));
  }
}

}  // namespace

Action command_settings(CLI::App& app) {
  const auto task = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const auto& kind : task_kinds()) names.emplace_back(kind->name);
  app.add_option("TASK", *task, "print the settings of this task alone")->check(CLI::IsMember(names));
  return [task] {
    fmt::print(
        "# Engine settings\n\nGenerated by `tearless-engine settings` from the option structs: do not edit. Settings "
        "marked *local* are not part of a run's id. A default that some tasks have otherwise comes first, then theirs "
        "with their names.\n");
    print_page(*task);
    return static_cast<int>(kExitDone);
  };
}

}  // namespace tearless::engine
