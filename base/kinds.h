// Registries: the kinds of norm, sublayer, search, task, schedule, optimiser, derived run and text metric. A registry
// is a list in a .def file, one line a kind, and one function a line that makes the kind:
//
//   #define NORM(kind) std::unique_ptr<NormKind> kind##_kind();
//   #include "engine/norm/norms.def"
//   #undef NORM
//   #define NORM(kind) {#kind, kind##_kind},
//   const Kinds<NormKind> kinds{{
//   #include "engine/norm/norms.def"
//   }};
//
// A kind has its name, a meaning for the settings page, and the values of its own options, if it has any.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

/// The base of a kind: copies with the values of its options. `Root`: of the interface, where Base is between.
template <class Base, class Kind, class Root = Base>
class KindOf : public Base {
 public:
  std::unique_ptr<Root> clone() const override { return std::make_unique<Kind>(static_cast<const Kind&>(*this)); }
};

/// One of each kind, in the order of the .def file. A value: copies are deep.
template <class Kind>
class Kinds {
 public:
  struct Entry {
    std::string_view name;
    std::unique_ptr<Kind> (*make)();
  };

  explicit Kinds(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      kinds_.push_back(entry.make());
      kinds_.back()->name = entry.name;
    }
  }
  Kinds(const Kinds& other) {
    for (const auto& kind : other) kinds_.push_back(kind->clone());
  }
  Kinds& operator=(const Kinds& other) { return *this = Kinds(other); }
  Kinds(Kinds&&) = default;
  Kinds& operator=(Kinds&&) = default;

  auto begin() const { return kinds_.begin(); }
  auto end() const { return kinds_.end(); }
  size_t size() const { return kinds_.size(); }

  /// The kind called `name`; null if no kind has that name.
  Kind* find(std::string_view name) const {
    for (const auto& kind : kinds_) {
      if (kind->name == name) return kind.get();
    }
    return nullptr;
  }
  /// REQUIRES: it exists, which the settings reader checks (std::logic_error).
  const Kind& at(std::string_view name) const {
    const Kind* const kind = find(name);
    if (kind) return *kind;
    throw std::logic_error(fmt::format("no kind is called {}", name));
  }

  /// What a setting that chooses one of them accepts.
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> names;
    for (const auto& kind : kinds_) names.push_back(kind->name);
    return names;
  }
  /// "`name` meaning; …", for the settings page.
  std::string meanings() const {
    std::string text;
    for (const auto& kind : kinds_) {
      text += fmt::format("{}`{}` {}", text.empty() ? "" : "; ", kind->name, kind->meaning);
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Kind>> kinds_;
};

}  // namespace tearless
