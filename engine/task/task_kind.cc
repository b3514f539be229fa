#include "engine/task/task_kind.h"

namespace tearless::engine {

#define TASK(kind) std::unique_ptr<TaskKind> kind##_kind();
#include "engine/task/tasks.def"
#undef TASK

namespace {

std::vector<std::unique_ptr<TaskKind>> make_kinds() {
  std::vector<std::unique_ptr<TaskKind>> kinds;
  const auto add = [&](std::string_view name, std::unique_ptr<TaskKind> kind) {
    kind->name = name;
    kinds.push_back(std::move(kind));
  };
#define TASK(kind) add(#kind, kind##_kind());
#include "engine/task/tasks.def"
#undef TASK
  return kinds;
}

}  // namespace

std::span<const std::unique_ptr<TaskKind>> task_kinds() {
  static const std::vector<std::unique_ptr<TaskKind>> kinds = make_kinds();
  return kinds;
}

std::unique_ptr<TaskKind> make_task_kind(std::string_view name) {
  for (const auto& kind : task_kinds()) {
    if (kind->name == name) return kind->clone();
  }
  return nullptr;
}

}  // namespace tearless::engine
