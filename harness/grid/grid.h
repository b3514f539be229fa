// A grid file as a value: the settings all runs share, the axes that vary, the seeds, what is left out and why, and how
// the table is laid out. Loading is pure but for reading the files: no clock, no database, no process. The harness
// merges dotted keys and never asks what they mean; the one key that it knows is the seed's. The format, by example, is
// docs/grid_file.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

/// A value as some file wrote it.
struct Setting {
  nlohmann::json value;  // a bool, an integer, a number or a text
  std::string folder;    // of the file that wrote it (absolute): a relative path in `value` starts there
  std::string place;     // "grids/demo.toml:12", for messages
};

/// Dotted key → value.
using Settings = std::map<std::string, Setting>;

/// One value of an axis: a label and the settings that come with it (one, or a bundle that moves together).
struct AxisPoint {
  std::string label;  // unique within its axis
  Settings set;
  std::string place;
};

struct Axis {
  std::string name;  // the dotted key, or the name of a bundle
  std::vector<AxisPoint> points;
  std::string place;
};

/// Runs that are left out of the cross product: recorded, counted and explained, never silent.
struct Exclusion {
  /// One `when` entry: true of a run whose point on `axis` is one that `holds`.
  struct Condition {
    size_t axis;
    std::vector<bool> holds;  // a flag a point of the axis
  };
  std::vector<Condition> when;  // all must be true
  std::string why;
  std::string place;
};

/// What each place of the table prints, and where it lies.
struct TableSpec {
  enum class Show { kMeanSpreadCount, kMeanSpread, kMean };

  /// Of the runs that differ on these axes only, the table reports the best: chosen by the mean of one score (of a
  /// development set), so that the reported one (of a test set) has had no say.
  struct Select {
    std::vector<size_t> over;  // axes; none of them in rows or columns
    std::string by;            // the score that chooses
    bool highest = true;
  };

  /// Numbers (or words: "fail") that a paper printed, in the layout of rows × columns.
  struct Published {
    std::string source;
    std::string score;                                // which of `scores` they are
    std::vector<std::vector<nlohmann::json>> values;  // a number, or a text shown as it is ("" for none)
    std::string place;
  };

  std::string caption;
  std::vector<size_t> rows;         // indices into Grid::axes, outermost first
  std::vector<size_t> columns;      // likewise; rows, columns and select.over name each axis once
  std::vector<std::string> scores;  // names, or patterns with `*`; empty: the command says which there are
  Show show = Show::kMeanSpreadCount;
  std::map<std::string, int> decimals;  // score or pattern → digits after the point; not named: taken from the spread
  std::optional<double> fail_below;     // a done run whose first score is below counts as failed in the whole table
  std::optional<Select> select;
  std::optional<Published> published;
};

struct Grid {
  std::string title;
  std::filesystem::path file;    // as it was given
  std::filesystem::path folder;  // absolute
  Settings base;                 // of the base files (later ones win) and of [set], which wins over them
  std::vector<Axis> axes;        // in the order in which the file writes them; the last one varies fastest
  std::vector<int64_t> seeds;    // the replicate axis, folded by tables; never empty
  std::string seed_key = "train.seed";
  std::vector<Exclusion> excludes;
  TableSpec table;
  std::optional<std::filesystem::path> program;  // another training program than tearless-engine; absolute

  /// Points of the cross product, seeds and excluded ones included.
  int64_t size() const;
  /// The axis of that name; UserError (with the nearest name; `place` leads the sentence) where there is none.
  size_t axis_index(const std::string& name, const std::string& place) const;
};

/// Reads a grid file and its bases. UserError with file and line for every mistake in them.
Grid load_grid(const std::filesystem::path& file);

}  // namespace tearless::harness
