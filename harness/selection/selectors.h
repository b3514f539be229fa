// The words by which people name sweeps and runs on the command line, the same for every command:
//
// - SWEEP: the id of a sweep or the beginning of it, its name, a grid file or the id without its checksum (the newest
//   such sweep), a file that lists grids (those of each), "last" (the newest sweep), "all"
// - RUN: the id of a run or the beginning of it
// - 3, 3-7: runs by their place in the sweep, from 1, as `tearless runs` prints it
// - failed: runs in a state: queued, running, done, diverged, failed, held, waiting_data, cancelled
// - axis=label: runs at a point of an axis; seed=N too
//
// Words of the last three kinds narrow down the sweeps that are named, or else the newest: several words of one kind
// are alternatives, and different kinds must all hold. Each of them must mean something in these sweeps, but that no
// run is in a state, or that no run has all that is asked for, is an empty selection and no mistake.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/store.h"

namespace tearless::harness {

struct Selection {
  std::vector<std::string> sweeps;  // whole sweeps; empty if single runs were named
  std::vector<std::string> runs;
  std::vector<std::string> narrowed;  // sweeps: `runs` are those of them that words of the last three kinds mean

  bool is_empty() const { return sweeps.empty() && runs.empty(); }
};

/// The words that name sweeps and runs whatever a workspace holds: "last", "all", and the states.
std::vector<std::string> fixed_words();

/// UserError for a name that no word could be: an empty one, one that cannot be typed, or one that means something
/// else.
void require_sweep_name(const std::string& name);

/// True for axis=label.
bool is_label_word(const std::string& word);
/// True for a word that can name nothing but a grid file: it ends in .toml, or there is a file of that name.
bool is_grid_word(const std::string& word);

/// True for the id of a sweep or the beginning of it, a sweep's name, and the beginning of a run's id.
bool names_sweep_or_run(const Store& store, const std::string& word);

/// UserError for a word that names nothing, or several things.
Selection select(const Store& store, const std::vector<std::string>& words);

/// As select(); without words the newest sweep.
Selection select_or_last(const Store& store, const std::vector<std::string>& words);

/// The ids of the sweeps that the words mean. UserError if they mean runs.
std::vector<std::string> whole_sweeps(const Store& store, const std::vector<std::string>& words);

/// The id of the one sweep that the words mean; without words the newest. UserError if they mean runs or several.
std::string one_sweep(const Store& store, const std::vector<std::string>& words);

/// The id of the only run that the words mean. UserError if they mean none or several.
std::string one_run(const Store& store, const std::vector<std::string>& words);

/// The ids of the selected runs, those of the whole sweeps too, each once.
std::vector<std::string> runs_in(const Store& store, const Selection& selection);

/// True if the sweep was submitted from this grid file, which need not exist any more.
bool is_of_grid(const Sweep& sweep, const std::filesystem::path& grid_file);

}  // namespace tearless::harness
