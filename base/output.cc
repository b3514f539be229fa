#include "base/output.h"

#include <cstdio>
#include <system_error>

#include "base/error.h"

namespace tearless {
namespace {

[[noreturn]] void refuse() {
  throw MachineError(
      "standard output took only a part of what was printed; check that its disk is not full and its reader has not "
      "ended");
}

}  // namespace

int with_output_written(const std::function<int()>& program) {
  int code;
  try {
    code = program();
  } catch (const std::system_error&) {  // fmt::print's
    if (std::ferror(stdout)) refuse();
    throw;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) refuse();
  return code;
}

void print_error(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

}  // namespace tearless
