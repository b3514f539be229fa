#include "harness/check/named_claims.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/table/called.h"

namespace tearless::harness {
namespace {

/// A claim at a place, with the words that mean it.
struct Named {
  const GridChecks* grid;
  const Check* check;

  std::vector<std::string> names() const {
    std::vector<std::string> all = {check->text.text};
    if (!check->name.empty()) all.insert(all.end(), {check->name, check->name + " " + check->text.text});
    return all;
  }
  /// Whether `word` is AXIS=LABEL of the place.
  bool is_at(const std::string& word) const {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    return std::ranges::any_of(check->place, [&](const auto& one) {
      const CalledLabel called(grid->names, one.first, one.second);
      return called.axis.is(word.substr(0, equals)) && called.label.is(word.substr(equals + 1));
    });
  }
  std::vector<std::string> places() const {
    std::vector<std::string> words;
    for (const auto& [axis, label] : check->place) words.push_back(axis + "=" + label);
    return words;
  }
};

struct Meant {
  std::vector<Named> claims = {};
  std::string show = {};  // "": none was given
};

Meant meant_by(const std::vector<GridChecks>& all, const std::vector<std::string>& words, const std::string& location) {
  Meant meant;
  for (const GridChecks& grid : all) {
    for (const Check& check : grid.claims) meant.claims.push_back({&grid, &check});
  }
  if (meant.claims.empty()) fail("{}: the page has no claims; add <!-- tearless check-table SWEEP --> to it", location);
  const std::vector<Named> every = meant.claims;
  for (const std::string& word : words) {
    const auto is_name = [&](const Named& one) {
      const std::vector<std::string> names = one.names();
      return std::ranges::find(names, word) != names.end();
    };
    const auto is_place = [&](const Named& one) { return one.is_at(word); };
    const bool names_claims = std::ranges::any_of(every, is_name), names_places = std::ranges::any_of(every, is_place);
    if (!names_claims && !names_places && word.find('{') != std::string::npos) {
      if (!meant.show.empty()) fail("{}: it shows {} and {}; choose one", location, meant.show, word);
      meant.show = word;
      continue;
    }
    if (!names_claims && !names_places) {
      std::vector<std::string> known = each_once(every, &Named::names);
      for (const std::string& place : each_once(every, &Named::places)) known.push_back(place);
      fail("{}: no claim of the page has the name, the text or the place \"{}\"{}", location, word,
           did_you_mean(word, known));
    }
    std::erase_if(meant.claims, [&](const Named& one) { return names_claims ? !is_name(one) : !is_place(one); });
    if (meant.claims.empty()) fail("{}: no claim is {}, all words together", location, fmt::join(words, " "));
  }
  return meant;
}

/// Puts values in the place of "{key}".
std::string filled(const std::string& show, const std::vector<std::pair<std::string, std::string>>& values,
                   const std::string& location) {
  std::string text;
  for (size_t at = 0; at < show.size();) {
    const size_t open = show.find('{', at), close = show.find('}', open);
    text += show.substr(at, open - at);
    if (open == std::string::npos) break;
    const std::string key = show.substr(open + 1, close == std::string::npos ? close : close - open - 1);
    const auto value = std::ranges::find(values, key, &std::pair<std::string, std::string>::first);
    if (close == std::string::npos || value == values.end()) {
      std::vector<std::string> keys;
      for (const auto& [known, of] : values) keys.push_back(fmt::format("{{{}}}", known));
      fail("{}: {}: nothing is called {{{}}}; it is one of {}", location, show, key, fmt::join(keys, ", "));
    }
    if (value->second.empty()) fail("{}: the claim has no {{{}}}", location, key);
    text += value->second;
    at = close + 1;
  }
  return text;
}

}  // namespace

std::string text_of_claim(const std::vector<GridChecks>& all, const std::vector<std::string>& words,
                          const std::string& location) {
  const auto [claims, show] = meant_by(all, words, location);
  if (claims.size() > 1) {
    const std::vector<std::string> texts =
        each_once(claims, [](const Named& one) { return std::vector<std::string>{one.check->text.text}; });
    const std::vector<std::string> places = each_once(claims, &Named::places);
    fail("{}: {} claims are meant; add one of {}", location, claims.size(),
         texts.size() > 1 ? fmt::format("\"{}\"", fmt::join(texts, "\", \""))
                          : fmt::format("{}", fmt::join(places, ", ")));
  }
  const Check& check = *claims.front().check;
  if (show.empty()) return cell_text(check, /*has_unit=*/!check.unit.empty(), /*has_count=*/true);
  std::string seeds = count_text(check.finding);
  if (check.look) seeds = std::to_string(check.look->seeds);
  return filled(show,
                {{"verdict", name_of(check.finding.verdict)},
                 {"numbers", check.shown},
                 {"seeds", seeds},
                 {"look", check.look ? std::to_string(check.look->number) : ""}},
                location);
}

std::string counts_of_claims(const std::vector<GridChecks>& all, const std::vector<std::string>& words,
                             const std::string& location) {
  const auto [claims, show] = meant_by(all, words, location);
  VerdictCounts counts = {};
  for (const Named& one : claims) ++counts[static_cast<size_t>(one.check->finding.verdict)];
  std::vector<std::string> parts;
  std::vector<std::pair<std::string, std::string>> values = {{"all", std::to_string(claims.size())}};
  for (size_t i = 0; i < counts.size(); ++i) {
    const char* const verdict = name_of(static_cast<ClaimVerdict>(i));
    values.emplace_back(verdict, std::to_string(counts[i]));
    if (counts[i] > 0) parts.push_back(fmt::format("{} {}", counts[i], verdict));
  }
  return show.empty() ? fmt::format("{}", fmt::join(parts, ", ")) : filled(show, values, location);
}

}  // namespace tearless::harness
