// Standard output is a file that can fail: a table that a full disk cut off must not pass for a whole one.
#pragma once

#include <functional>
#include <string>

namespace tearless {

/// The exit code of `program`, after what it printed was written out. MachineError if standard output did not take it.
int with_output_written(const std::function<int()>& program);

/// Prints a line on standard error. What that does not take is lost, since there is nowhere left to say so.
void print_error(const std::string& line);

}  // namespace tearless
