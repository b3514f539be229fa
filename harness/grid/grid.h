// A grid file in memory: the settings that all runs share, the axes that vary, the seeds, the exclusions with their
// reasons, and the views of the results. The format is described in docs/grid_file.md.
//
// The harness merges settings by their dotted keys and does not interpret them; it knows the key of the seed and the
// prefix "derived.". Loading reads files and does nothing else: no clock, no database, no process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/grid/view.h"

namespace tearless::harness {

/// A value with the location in the file that sets it.
struct Setting {
  nlohmann::json value;  // a bool, an integer, a number, a text, or a list of these
  std::string folder;    // absolute, of the file that sets it: a relative path in `value` starts there
  std::string location;  // "grids/demo.toml:12", for messages

  bool may_be_path() const { return value.is_string() || value.is_array(); }
};

/// Dotted key → value.
using Settings = std::map<std::string, Setting>;

/// One value of an axis: a label, and the settings it stands for (one setting, or a bundle of several).
struct AxisPoint {
  std::string label;  // unique within its axis
  Settings set;       // overrides Grid::base
  std::string location;
};

struct Axis {
  std::string name;  // the dotted key, or the name of a bundle
  std::vector<AxisPoint> points;
  std::string location;
};

/// Combinations that are left out of the cross product. Plans and tables count them and print `why`.
struct Exclusion {
  /// One entry of `when`. It is true for a combination if holds[combination.index[axis]].
  struct Condition {
    size_t axis;              // index into Grid::axes
    std::vector<bool> holds;  // one flag for each point of the axis
  };
  std::vector<Condition> when;  // the exclusion matches a combination if all are true
  std::string why;
  std::string location;
};

/// The label of derived runs beside those of the axes: the name of their derivation.
inline constexpr const char* kDerivedLabel = "derived";

/// A section [derived.NAME]: a run that derives from each run of the grid once that has ended (docs/run_directory.md).
struct Derivation {
  std::string name;
  Settings set;         // "derived.kind", "derived.beam" …, the name and files of a test set included
  std::string outputs;  // the derivation whose runs it derives from; "": from the trained runs
  std::string location;
};

/// How the runs are treated: the table [policy]. It changes no result.
struct GridPolicy {
  std::optional<double> stall_minutes;   // without sign of life, after which an attempt is stopped; 0: never
  std::optional<int> grace_seconds;      // between SIGTERM and SIGKILL
  std::optional<int64_t> memory_bytes;   // that a run needs
  std::map<std::string, int> tries;      // class of failure → failures after which a run has failed
  std::vector<std::string> environment;  // variables that runs take from the submission: names, with * and ?
};

struct Grid {
  std::string title;
  std::filesystem::path file;           // as given on the command line
  std::filesystem::path folder;         // absolute
  Settings base;                        // from the base files (later files win), then from [set], which wins over them
  std::vector<Axis> axes;               // in the order of the file
  std::vector<int64_t> seeds;           // the replicates; tables take mean and spread over them. Never empty
  std::string seed_key = "train.seed";  // the setting that receives the seed
  std::vector<Exclusion> excludes;
  std::vector<Derivation> derivations;           // in the order of the file, but those with `outputs` last
  std::vector<View> views;                       // in the order of the file. Never empty
  std::optional<std::filesystem::path> program;  // absolute; a training program other than tearless-engine
  GridPolicy policy;

  /// The text of a grid file that is read as this grid, without base files and without the policy. Grids with the same
  /// text ask for the same runs and show them alike, wherever their files are.
  std::string merged;

  /// The number of combinations, seeds and excluded ones included.
  int64_t size() const;

  /// The derivation called `name`. REQUIRES: the grid has it.
  const Derivation& derivation(const std::string& name) const;

  /// The index of the axis `name`. UserError if there is none; its message starts with `location`.
  size_t axis_index(const std::string& name, const std::string& location) const;
};

/// Reads a grid file and its base files. UserError with file and line for every mistake in them.
Grid load_grid(const std::filesystem::path& file);

/// As load_grid(), for a text that was read from `file`. Its table [submitted], if it has one, says where the text came
/// from that Grid::merged was made of: the `file`, and its `folder`.
Grid parse_grid(std::string_view text, const std::filesystem::path& file);

}  // namespace tearless::harness
