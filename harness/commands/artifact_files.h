// What an artefact (`tearless artifact`) has besides results: a file each, below artifact/, of what tearless prints of
// them. All of it is made of the artefact's own runs/ and sweeps/, so that whoever has the file can make it again and
// compare (verify_artifact.h):
//
//   README.md       what it is, how to look at it, to verify it and to train it again, with what that costs
//   tables/         GRID-1.md, .csv, .json and .tex of each table; GRID: the grid file's name
//   claims/         GRID.md, .csv and .json of each grid with claims or tolerances
//   figures/        NAME.svg, .csv and .tex of each figure; of several sweeps in a folder GRID
//   report.html     a page with all of it (`tearless report`)
//   licences/       files that the user gave
//   MANIFEST.json   which build made it, when, and the SHA-256 of every other file of the archive; sealed
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"

namespace tearless::harness {

inline constexpr const char* kManifest = "artifact/MANIFEST.json";
inline constexpr const char* kLicences = "artifact/licences";
inline constexpr int kArtifactFormat = 1;

struct ArtifactFile {
  std::string name;  // relative to the archive
  std::string bytes;
};

struct ArtifactCounts {
  size_t runs = 0, results = 0;  // runs of the grids, and how many of them have a result
  size_t tables = 0, figures = 0, claims = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ArtifactCounts, runs, results, tables, figures, claims)

/// "12 runs, 3 tables, 2 figures, 5 claims"; if some have none, "8 of 12 runs have a result, 3 tables …".
std::string text_of(const ArtifactCounts& counts);

/// What is printed of the results in an archive.
struct PrintedResults {
  std::vector<ArtifactFile> files;
  ArtifactCounts counts;
};

/// Of the sweeps with these ids in a workspace that an archive was unpacked into, or is to be packed from. `file`: the
/// artefact's own name; `licences`: the names of files. Has no clock: the same archive gives the same bytes. UserError
/// for a figure or a table that the results do not allow.
PrintedResults print_results(const Workspace& archive, const std::vector<std::string>& sweeps, const std::string& file,
                             const std::vector<std::string>& licences);

}  // namespace tearless::harness
