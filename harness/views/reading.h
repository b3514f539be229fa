// What the sections of all views have: axes, labels, and the part of the grid that a view is about. Internal to
// harness/views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/table_reader.h"
#include "harness/grid/grid.h"
#include "harness/grid/names.h"
#include "harness/grid/where.h"
#include "harness/views/published.h"

namespace tearless::harness {

/// `where = { axis = label or [labels] }`. UserError for an axis or a label that the grid does not have.
Where read_where(TableReader& reader, const Grid& grid);

/// A caption or a source: read_name(); nullopt: the key is absent.
std::optional<Name> name_at(TableReader& reader, const std::string& key);

/// Whether it leaves one point of an axis.
bool leaves_one_point(const Grid& grid, const Where& where, size_t axis);

/// The indices of the axes that a key names. UserError for one that the grid does not have.
std::vector<size_t> axes_named(TableReader& reader, const std::string& key, const Grid& grid);

/// The points that `labels` name, by their index, in this order. UserError, after "LOCATION: ", for a label that the
/// axis does not have.
std::vector<uint32_t> points_named(const Axis& axis, const std::vector<std::string>& labels,
                                   const std::string& location);

/// A number, a text, or { value = …, source = … }. A text that begins with a number and then has marks alone
/// ("20.91‡*") is that number; "" is none. UserError for anything else.
PublishedNumber read_published(const toml::node& node, const TableReader& reader);

/// Whether a table is { prediction = true, at_most = …, runs = … }, spelt well or not, and no table of score =
/// tolerance.
bool is_prediction(const toml::node& node);
/// A number above 0, or { prediction = true, at_most = …, runs = … }. UserError for anything else.
Tolerance read_tolerance(const toml::node& node, const TableReader& reader);

/// A whole number from `least` to `most`; nullopt without the key. UserError for any other number.
std::optional<int64_t> whole_number(TableReader& reader, const std::string& key, int64_t least, int64_t most);

}  // namespace tearless::harness
