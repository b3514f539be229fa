#include "engine/task/task_kind.h"

#include <ranges>

namespace tearless::engine {

#define TASK(kind) std::unique_ptr<TaskKind> kind##_kind();
#include "engine/task/tasks.def"
#undef TASK

const Kinds<TaskKind>& task_kinds() {
#define TASK(kind) {#kind, kind##_kind},
  static const Kinds<TaskKind> kinds{{
#include "engine/task/tasks.def"
  }};
#undef TASK
  return kinds;
}

std::vector<std::string> names_of(const Counts& counts) {
  const auto names = std::views::keys(counts);
  return {names.begin(), names.end()};
}

std::unique_ptr<TaskKind> make_task_kind(std::string_view name) {
  const TaskKind* const kind = task_kinds().find(name);
  return kind ? kind->clone() : nullptr;
}

}  // namespace tearless::engine
