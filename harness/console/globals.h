// What all commands share: the options before the command's name, and the exit codes.
#pragma once

#include <filesystem>

namespace tearless::harness {

/// Options of every command; they may precede or follow it.
struct Globals {
  std::filesystem::path workspace;  // --workspace, else default_workspace(): holds the database, runs/ and sweeps/
  std::filesystem::path engine;     // --engine: the training program; empty: see Program::find()
  bool is_workspace_named = true;   // by --workspace or $TEARLESS_WORKSPACE; false: found from the current folder
  bool json = false;                // --json: machine-readable output, if the command has one
};

/// Exit codes of the commands.
enum CommandExit : int {
  kOk = 0,
  kSomethingFailed = 1,  // the command worked, but a run has no result, or verify found a difference
  kUsage = 2,            // a UserError
  kInterrupted = 130,    // Ctrl-C
};

}  // namespace tearless::harness
