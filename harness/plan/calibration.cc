#include "harness/plan/calibration.h"

#include <memory>

#include "base/error.h"
#include "base/print.h"

namespace tearless::harness {
namespace {

std::vector<Timing> timings_in(const Workspace& workspace) {
  const std::unique_ptr<const Store> store = Store::open_reader(workspace);
  return store ? store->timings() : std::vector<Timing>();
}

}  // namespace

std::vector<Timing> calibrations_in(const Workspace& workspace) {
  try {
    return timings_in(workspace.smoke());
  } catch (const UserError& error) {
    notice(fmt::format("the estimate is without calibrations: {}", error.what()));
    return {};
  }
}

std::set<std::string> timed_classes(const Workspace& workspace) {
  std::set<std::string> classes;
  for (const Timing& run : timings_in(workspace)) classes.insert(run.resource_class);
  for (const Timing& run : calibrations_in(workspace)) classes.insert(run.resource_class);
  return classes;
}

}  // namespace tearless::harness
