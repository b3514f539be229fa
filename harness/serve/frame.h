// What all pages of `tearless serve` have around them, and what they link with.
#pragma once

#include <string>
#include <vector>

#include "harness/runs/progress.h"

namespace tearless::harness {

/// A whole page. `html`: of its <main>, which live.js replaces when something has changed. `place`: the workspace.
std::string framed(const std::string& place, const std::string& title, const std::string& html);

/// <a href="…">text</a>.
std::string link_to(const std::string& address, const std::string& text);
std::string address_of_run(const std::string& run);
std::string address_of_sweep(const std::string& sweep);

struct CurveOfRun {
  std::string run, label;
};
/// A place where live.js draws curves of these runs: a choice of metric, of which the first is shown, and a chart.
/// "" without runs or metrics.
std::string place_of_curves(const std::vector<CurveOfRun>& runs, const std::vector<std::string>& metrics);

/// In the order in which people look at them: development scores, the loss, others.
std::vector<std::string> in_order_of_interest(std::vector<std::string> metrics);

/// A table of runs that are under way; "" for none.
std::string table_of_progress(const std::vector<Progress>& running);

}  // namespace tearless::harness
