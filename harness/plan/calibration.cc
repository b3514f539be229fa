#include "harness/plan/calibration.h"

#include "base/error.h"
#include "base/print.h"
#include "harness/store/paces.h"

namespace tearless::harness {
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
