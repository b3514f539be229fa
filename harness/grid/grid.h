// A grid file in memory: the settings that all runs share, the axes that vary, the seeds, the exclusions with their
// reasons. The views of the results are read from it by views/. The format is described in docs/grid_file.md.
//
// The settings of a run come about in this order, later ones win:
//   1. base files, `unset`, [set], --set
//   2. the axes, in the order of Grid::axes; sub-grids are the first
//   3. [computed]; then the variables are taken away
// Then exclusions are compared with the result, and a sample is drawn of what they leave.
//
// The harness merges settings by their dotted keys and does not interpret them; it knows the key of the seed and the
// prefix "derived.". Loading reads files and does nothing else: no clock, no database, no process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/grid/defined_score.h"
#include "harness/grid/expression.h"
#include "harness/grid/names.h"

namespace tearless::harness {

/// A value with the location in the file that sets it.
struct Setting {
  nlohmann::json value;          // a bool, an integer, a number, a text, or a list of these
  std::string folder;            // absolute, of the file that sets it: a relative path in `value` starts there
  std::string location;          // "grids/demo.toml:12", for messages
  bool is_of_base_file = false;  // not of a section of the grid file itself

  bool may_be_path() const { return value.is_string() || value.is_array(); }
};

/// Dotted key → value.
using Settings = std::map<std::string, Setting>;

/// One entry of `when`: it holds for combinations with certain points of one axis or, of a setting that several axes
/// set or that is computed, with certain values of that setting.
struct PointCondition {
  std::optional<size_t> axis;          // index into Grid::axes
  std::vector<bool> points;            // with an axis: one flag for each of its points
  std::string key;                     // the word that names the axis or the setting in `when`
  std::vector<nlohmann::json> values;  // without an axis: those of the setting for which the condition holds, or "> 8"
  std::vector<Expression> comparisons = {};  // the latter among `values`
  bool where_absent = false;  // with an axis: the condition holds at its point "–", where that is not in `points`

  /// With an axis: true if the condition holds at its point.
  bool has(size_t point) const { return point < points.size() ? points[point] : where_absent; }
};

/// One value of an axis: a label, and the settings it stands for (one setting, or a bundle of several).
struct AxisPoint {
  std::string label;                 // unique within its axis
  Settings set;                      // overrides Grid::base
  std::vector<std::string> unset;    // keys of Grid::base that its runs do not have
  std::vector<PointCondition> when;  // on earlier axes; the point stands in combinations for which all hold
  std::string location;
};

/// The label of the point that an axis has where it does not apply.
inline constexpr const char* kAbsentLabel = "–";

struct Axis {
  std::string name;  // the dotted key, or the name of a bundle
  std::vector<AxisPoint> points;
  std::string location;
  bool is_conditional = false;          // some points have conditions
  std::optional<uint32_t> absent = {};  // the last point: it stands where no other does, and changes no setting
};

/// The axis that the sub-grids are the points of.
inline constexpr const char* kSubgridAxis = "subgrid";

/// A setting that is calculated from others, an entry of [computed].
struct Computed {
  std::string key;
  Expression expression;
  Setting written;  // the expression's text and its location
};

/// Combinations that are left out of the grid. Plans and tables count them and print `why`.
struct Exclusion {
  std::vector<PointCondition> when;  // the exclusion matches a combination if all hold
  std::string why;
  std::string location;
};

/// A part of the grid that is drawn at random, the same points whenever they are drawn: those whose hash, of `seed` and
/// their labels, is not above `highest`. Of a grid that is too large to be listed they are drawn axis by axis. A larger
/// count keeps the points of a smaller one.
struct Sample {
  int64_t count = 0;  // points to draw, without replicates
  int64_t seed = 0;
  uint64_t highest = 0;
  int64_t of = 0;  // points there are, without the excluded ones; 0: too many to be counted
  std::vector<std::vector<uint32_t>> drawn = {};  // those of a grid that is too large, as Combination::index, sorted
};

/// The label of derived runs beside those of the axes: the name of their derivation.
inline constexpr const char* kDerivedLabel = "derived";

/// A section [derived.NAME]: a run that derives from each run of the grid once that has ended (docs/derived_runs.md).
struct Derivation {
  std::string name;
  Settings set;                      // "derived.kind", "derived.beam" …, the name and files of a test set included
  std::string outputs;               // the derivation whose runs it derives from; "": from the trained runs
  std::vector<PointCondition> when;  // the combinations that it derives from, where all hold
  std::string location;
};

/// How the runs are treated: the table [policy]. It changes no result.
struct GridPolicy {
  std::optional<double> stall_minutes;   // without sign of life, after which an attempt is stopped; 0: never
  std::optional<int> grace_seconds;      // between SIGTERM and SIGKILL
  std::optional<int64_t> memory_bytes;   // that a run needs
  std::map<std::string, int> tries;      // class of failure → failures after which a run has failed
  std::vector<std::string> environment;  // variables that runs take from the submission: names, with * and ?
  bool same_device = false;              // all runs on one kind of GPU or processor
};

/// The sections that views/ reads (views/views.h).
inline constexpr const char* kViewSections[] = {"table", "figure", "claim"};

/// How claims are tested: the section [claims].
struct ClaimTests {
  double level = 0.05;             // two-sided
  std::vector<size_t> looks = {};  // the numbers of seeds after which they are decided; empty: once, with all seeds
  std::string location = {};       // of `looks`
};

struct ParsedFile;

struct Grid {
  std::string title;
  std::filesystem::path file;            // as given on the command line
  std::filesystem::path folder;          // absolute
  std::vector<std::string> set_options;  // of the command line: "key=value"
  Settings base;                         // from the base files (later files win), then from [set], which wins over them
  std::vector<Axis> axes;                // the sub-grids, then in the order of the file
  std::vector<int64_t> seeds;            // the replicates; tables take mean and spread over them. Never empty
  std::string seed_key = "train.seed";   // the setting that receives the seed
  std::vector<Computed> computed;        // each after those that it needs
  std::set<std::string> variables;       // keys that are no settings of the runs
  std::vector<Exclusion> excludes;
  std::optional<Sample> sample;
  int64_t cells = 0;                         // combinations of points, excluded and not drawn ones included; as `of`
  std::vector<Derivation> derivations;       // in the order of the file, but those with `outputs` last
  std::vector<DefinedScore> defined_scores;  // in the order of the file
  std::shared_ptr<const ParsedFile> parsed;  // with the sections of the views
  Names names;                               // in print
  std::vector<NamedScore> named;             // entries of the file's [names] that are neither axis nor label
  std::optional<std::filesystem::path> program;  // absolute; a training program other than tearless-engine
  GridPolicy policy;
  ClaimTests claims;
  std::vector<std::string> tags;  // words of the user's own, by which sweeps are selected
  std::string note;               // of the user, one line

  /// The text of a grid file that is read as this grid, without base files and without the policy. Grids with the same
  /// text ask for the same runs and show them alike, wherever their files are.
  std::string merged;

  /// What names the grid in a command to type next: "grids/demo.toml --set train.max_epochs=10".
  std::string words() const;

  /// The number of combinations, seeds, excluded ones and those not drawn included.
  int64_t size() const { return cells * static_cast<int64_t>(seeds.size()); }

  /// The derivation called `name`. REQUIRES: the grid has it.
  const Derivation& derivation(const std::string& name) const;

  /// The index of the axis `name`. UserError if there is none; its message starts with `location`.
  size_t axis_index(const std::string& name, const std::string& location) const;
};

/// Reads a grid file and its base files, but for its views (views_of()). `set`: settings of the command line,
/// "key=value", that win over [set]; their relative paths start in the current directory. UserError with file and line
/// for every mistake in them.
Grid load_grid(const std::filesystem::path& file, const std::vector<std::string>& set = {});

/// As load_grid(), of a layout of the runs of `submitted`, which gives its settings and names in print where base files
/// of the layout are not here.
Grid load_layout(const std::filesystem::path& file, const Grid& submitted);

/// UserError, with `location`, for a tag that is no word.
void require_tag(const std::string& tag, const std::string& location);

/// As load_grid(), for a text that was read from `file`. Its table [submitted], if it has one, says where the text came
/// from that Grid::merged was made of: the `file`, and its `folder`.
Grid parse_grid(std::string_view text, const std::filesystem::path& file, const std::vector<std::string>& set = {});

}  // namespace tearless::harness
