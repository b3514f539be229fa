#include "harness/store/frozen_grid.h"

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "harness/grid/grid_json.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

fs::path frozen_file(const Workspace& workspace, const std::string& sweep) {
  return workspace.sweep(sweep) / "grid.json";
}

}  // namespace

void freeze_grid(const Workspace& workspace, const std::string& sweep, const Grid& grid) {
  make_folders(workspace.sweep(sweep));
  write_atomically(frozen_file(workspace, sweep), sealed({{"sweep", sweep}, {"grid", to_json(grid)}}));
}

Grid frozen_grid(const Workspace& workspace, const std::string& sweep) {
  const fs::path file = frozen_file(workspace, sweep);
  const std::optional<json> record = unsealed(read_file(file));
  if (!record) fail("{} is damaged or was changed; submit the sweep's grid again", file.string());
  if (const json of = record->value("sweep", json()); of != sweep) {
    fail("{} is of the sweep {}; submit the grid of {} again", file.string(), of.dump(), sweep);
  }
  try {
    return grid_from(record->at("grid"));
  } catch (const std::exception& error) {
    fail("{} is no grid that this tearless can read ({}); submit the sweep's grid again", file.string(), error.what());
  }
}

}  // namespace tearless::harness
