// The pages of `tearless serve`: what a workspace holds, as HTML. Each is made when it is asked for, over a read-only
// connection; nothing of the workspace is changed.
//
//   /              sweeps with their progress, runs that are under way
//   /sweep/ID      tables, claims, figures, and runs of a sweep
//   /run/ID        what `explain` says, curves, settings
//   /runs?id=A&id=B   what `explain` says of several, such as those of a cell
//   /log?run=ID    the end of what its newest attempt printed
//   /diff?a=A&b=B  what `diff` says of two runs or two sweeps
//   /curve?run=ID&metric=NAME   its points as JSON
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/console/globals.h"
#include "harness/runs/workspace.h"
#include "harness/serve/http_server.h"
#include "harness/service/facts.h"
#include "harness/store/change_watch.h"
#include "harness/store/store.h"

namespace tearless::harness {

class Pages {
 public:
  explicit Pages(const Globals& globals) : globals_(globals), workspace_(globals.workspace) {}

  /// What cannot be shown is a page that says why in a sentence: 404 for what the workspace has not, 503 for a
  /// workspace that cannot be read now.
  Reply answer(const Target& target);

  /// Whether another process has written to the workspace since the last call. True for the first after rest().
  bool has_changed();
  /// Closes the database. For when nobody looks: a connection keeps the service from leaving it as one file.
  void rest();

 private:
  /// Opens the database, or has it open as it is now. UserError if there is none.
  const Store& store();
  Reply shown(const Target& target);
  /// Asks the service of the workspace what it does. Returns why it does not say, if it should; "".
  std::string ask();

  const Globals& globals_;
  Workspace workspace_;
  std::unique_ptr<const Store> store_;            // to open it reads all rows but metrics: kept while nothing changes
  std::optional<ChangeWatch> of_store_, of_all_;  // since it was opened; since has_changed() was called
  std::optional<ServiceFacts> facts_ = {};
  std::string silence_ = {};  // of a service that does not answer
  double silent_since_ = 0;
};

}  // namespace tearless::harness
