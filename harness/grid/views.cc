#include <map>
#include <utility>

#include "base/error.h"
#include "base/table_reader.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

// Calls `use` for each kind of view, with an empty specification of it.
template <class F, size_t... i>
void for_each_kind(const F& use, std::index_sequence<i...>) {
  (use(std::variant_alternative_t<i, ViewSpec>()), ...);
}
template <class F>
void for_each_kind(const F& use) {
  for_each_kind(use, std::make_index_sequence<std::variant_size_v<ViewSpec>>());
}

// `taken`: title → location of the view of this kind that has it.
template <class Spec>
void load_view(const toml::table& table, const std::string& file, std::map<std::string, std::string>& taken,
               Grid& grid) {
  TableReader reader(table, fmt::format("[{}]", Spec::kSection), file);
  const std::optional<std::string> own_title = reader.text(Spec::kTitle);
  if (!own_title && !Spec::kHasDefaultTitle)
    fail("{}: a {} needs its {}", reader.location(), Spec::kSection, Spec::kTitle);
  const std::string title = own_title.value_or(grid.title);
  Spec spec;
  read_view(reader, grid, spec);
  reader.refuse_leftovers();
  const auto [first, is_new] = taken.emplace(title, reader.location());
  if (!is_new) {
    fail("{}: two {}s have the {} \"{}\" (the first at {}); each of several needs its own", reader.location(),
         Spec::kSection, Spec::kTitle, title, first->second);
  }
  grid.views.push_back({title, std::move(spec)});
}

}  // namespace

ViewSections view_sections(TableReader& root) {
  ViewSections sections;
  for_each_kind([&]<class Spec>(const Spec&) { sections[Spec::kSection] = root.tables(Spec::kSection); });
  return sections;
}

void load_views(const ViewSections& sections, const std::string& file, Grid& grid) {
  for_each_kind([&]<class Spec>(const Spec&) {
    std::map<std::string, std::string> taken;
    for (const toml::table* table : sections.at(Spec::kSection)) load_view<Spec>(*table, file, taken, grid);
    if (grid.views.empty()) load_view<TableSpec>(toml::table(), file, taken, grid);
  });
}

}  // namespace tearless::harness
