#include "harness/views/views.h"

#include <map>
#include <sstream>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/table_reader.h"
#include "harness/grid/parsed_file.h"
#include "harness/views/reading.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxViews = 100;  // of a kind

// Calls `use` for each kind of view, with an empty specification of it.
template <class F, size_t... i>
void for_each_kind(const F& use, std::index_sequence<i...>) {
  (use(std::variant_alternative_t<i, ViewSpec>()), ...);
}
template <class F>
void for_each_kind(const F& use) {
  static_assert(std::size(kViewSections) == std::variant_size_v<ViewSpec>);
  for_each_kind(use, std::make_index_sequence<std::variant_size_v<ViewSpec>>());
}

std::string hash_of(toml::table claim) {
  for (const char* key : {"name", "source"}) claim.erase(key);
  std::ostringstream text;
  text << toml::toml_formatter(claim);
  constexpr size_t kDigits = 16;
  return sha256(text.str()).substr(0, kDigits);
}

// `taken`: title → location of the view of this kind that has it.
template <class Spec>
void load_view(const toml::table& table, const Grid& grid, std::map<std::string, std::string>& taken,
               std::vector<View>& views) {
  TableReader reader(table, fmt::format("[{}]", Spec::kSection), grid.parsed->file);
  const std::optional<Name> own_title = name_at(reader, Spec::kTitle);
  if (!own_title && !Spec::kHasDefaultTitle)
    fail("{}: a {} needs its {}", reader.location(), Spec::kSection, Spec::kTitle);
  const Name title = own_title.value_or(Name{grid.title});
  Spec spec;
  read_view(reader, grid, views, spec);
  reader.refuse_leftovers();
  if constexpr (std::is_same_v<Spec, ClaimSpec>) spec.hash = hash_of(table);
  const auto [first, is_new] = taken.emplace(title.text, reader.location());
  if (!is_new) {
    fail("{}: two {}s have the {} \"{}\" (the first at {}); each of several needs its own", reader.location(),
         Spec::kSection, Spec::kTitle, title.text, first->second);
  }
  views.push_back({title, std::move(spec)});
}

}  // namespace

std::vector<View> views_of(const Grid& grid) {
  TableReader root(grid.parsed->root, "", grid.parsed->file);
  std::vector<View> views;
  for_each_kind([&]<class Spec>(const Spec&) {
    std::map<std::string, std::string> taken;
    const std::vector<const toml::table*> sections = root.tables(Spec::kSection);
    if (sections.size() > kMaxViews)
      fail("{}: the grid has more than {} {}s; split it", root.location(Spec::kSection), kMaxViews, Spec::kSection);
    for (const toml::table* table : sections) load_view<Spec>(*table, grid, taken, views);
    if (views.empty()) load_view<TableSpec>(toml::table(), grid, taken, views);
  });
  return views;
}

}  // namespace tearless::harness
