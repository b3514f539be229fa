// A run: one point of a grid with one seed, as the training program has accepted it. `check` makes it
// (plan/program.h); the sweep's folder keeps it, one line of JSON each (folders/sweep_directory.h); a row of the
// database is a run with its state (store/store.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/runs/input_files.h"
#include "harness/runs/needs.h"

namespace tearless::harness {

/// Axis name → label, in the order of the grid's axes.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// The label on an axis; "" if there is no such axis.
const std::string& label_on(const Labels& labels, const std::string& axis);

/// The setting that says which program trains a run. Runs of tearless-engine do not have it (plan/identity.h).
inline constexpr std::string_view kProgramIdentity = "program.identity";
bool names_program(std::string_view settings);

struct Run {
  std::string id;                               // 16 hex digits
  std::string settings;                         // text of run.toml; "" while its data are missing
  std::string waiting_for = {};                 // not "": the missing file, one sentence; the id is provisional
  std::string local = {};                       // text of local.toml
  std::shared_ptr<const InputFiles> data = {};  // null: the program does not name them
  Labels coordinates = {};                      // in its grid
  int64_t seed = 0;
  int64_t rank = 0;  // runs of lower rank are started first
  Needs needs = {};
  std::optional<int64_t> parameters = {};  // of the model; unset until the data are prepared
  int64_t updates = 0;                     // maximum number
  int64_t evaluations = 0;                 // maximum number; 0: not known
  std::vector<std::string> warnings = {};  // of the training program about its input, one sentence each
  // Settings that have no effect on the result → the setting that switches them off, or "". Of answers of `check` only.
  std::map<std::string, std::string> unused = {};
};

/// {"axis": "label", …}
nlohmann::ordered_json to_json(const Labels& labels);
Labels labels_from(const nlohmann::ordered_json& json);  ///< the inverse

/// "layer_norm · layers 4", for people: a bare label says what it is of.
std::string label_of(const Labels& labels);
/// The same with the seed: "layer_norm · layers 4 · seed 1".
std::string label_of(const Run& run);
/// What the parts of such a label mean: "model.norm.kind · model.placement · seed".
std::string label_axes(const Labels& coordinates);

/// One object with the members of an answer of `check` (docs/run_directory.md), and of the grid: coordinates, seed,
/// rank.
nlohmann::ordered_json to_json(const Run& run);

/// The inverse. The members of the grid, and what a program need not say, may be missing. nlohmann::json::exception for
/// members of another type. `like`: a run that was read before; equal input files are shared with it.
Run run_from(const nlohmann::ordered_json& json, const Run* like = nullptr);

}  // namespace tearless::harness
