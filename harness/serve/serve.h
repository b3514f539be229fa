// `tearless serve`: a workspace, or an archive, in a browser on this machine. It changes nothing.
#pragma once

#include "harness/commands/commands.h"

namespace tearless::harness {

Action command_serve(CLI::App& app, const Globals& globals);

}  // namespace tearless::harness
