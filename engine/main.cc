// tearless-engine: trains one run in its directory and answers the harness. Knows nothing of grids or SQL.
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/fault.h"
#include "base/nearest.h"
#include "base/output.h"
#include "base/run_directory.h"
#include "base/utf8.h"
#include "engine/commands.h"
#include "engine/data/raw_files.h"
#include "engine/device.h"
#include "engine/ops/matmul.h"
#include "engine/ops/memory.h"
#include "engine/run/run_options.h"
#include "engine/train/phase.h"
#include "engine/train/stop_request.h"

namespace {

struct Command {
  const char* name;
  const char* help;
  tearless::engine::Action (*declare)(CLI::App&);
};

constexpr Command kCommands[] = {
    {"check", "check settings: print id, parameters and memory, or the mistakes", tearless::engine::command_check},
    {"train", "train a run, or resume it from its newest checkpoint", tearless::engine::command_train},
    {"decode", "translate a file with a trained run", tearless::engine::command_decode},
    {"score", "compute BLEU or chrF of hypotheses against references", tearless::engine::command_score},
    {"bench", "measure how fast a model trains on this machine, and the time of each operation",
     tearless::engine::command_bench},
    {"prepare", "learn subwords and encode a corpus into the cache", tearless::engine::command_prepare},
    {"probe", "print this program's version and the devices it can use", tearless::engine::command_probe},
    {"settings", "print every setting with meaning, default and limits, as Markdown",
     tearless::engine::command_settings},
};

int refuse(const std::string& sentence, int code) {
  tearless::print_error("tearless-engine: " + tearless::printable_lines(sentence));
  return code;
}

bool is_out_of_memory(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return text.find("allocate memory") != std::string_view::npos || text.find("out of memory") != std::string_view::npos;
}

#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer must initialise first
/// Called by the loader before any library is initialised. Initialising LibTorch takes a good part of a second, during
/// which a stop request must not look like a crash, and on an older processor it is what crashes.
void before_initialisers(int argc, char** argv, char**) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt")) {
    ::dprintf(
        STDERR_FILENO,
        "tearless-engine: this processor is older than x86-64-v2 (it lacks SSE4.2), train on one of 2009 or later\n");
    ::_exit(tearless::kExitMachine);
  }
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "train" || command == "prepare") tearless::engine::stop_at_once();
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const kBeforeInitialisers)(int, char**,
                                                                                char**) = before_initialisers;
#endif

int command(int argc, char** argv) {
  using namespace tearless;
  fault::begin(fault::kProgram);
  engine::fix_matmul_order();
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer must see each tensor freed
  engine::cache_freed_memory();
#endif
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S %v");

  CLI::App app("Trains Transformers for `tearless`; every command has --help.", "tearless-engine");
  app.require_subcommand(1);
  app.set_version_flag("--version", engine::program_version());
  std::vector<std::string> names;
  engine::Action action;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    const engine::Action run = command.declare(*sub);
    sub->callback([&action, run] { action = run; });
    names.emplace_back(command.name);
  }
  // CLI11 would report a mistyped command as a missing one.
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    return refuse(fmt::format("there is no command \"{}\"{}; tearless-engine --help lists them", argv[1],
                              did_you_mean(argv[1], names)),
                  kExitSettingsRefused);
  }
  try {
    return with_output_written([&] {
      try {
        app.parse(argc, argv);
      } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : static_cast<int>(kExitSettingsRefused);
      }
      return action();
    });
  } catch (const MachineError& error) {
    return refuse(error.what(), kExitMachine);
  } catch (const engine::DataError& error) {
    return refuse(error.what(), kExitData);
  } catch (const UserError& error) {
    return refuse(error.what(), kExitSettingsRefused);
  } catch (const std::bad_alloc&) {
    return refuse(engine::out_of_memory(engine::phase_of_process()), kExitOutOfMemory);
  } catch (const c10::Error& error) {
    if (is_out_of_memory(error)) return refuse(engine::out_of_memory(engine::phase_of_process()), kExitOutOfMemory);
    const std::string text = error.what_without_backtrace();  // the first line of a CUDA error says what happened
    return refuse(text.substr(0, text.find('\n')) + engine::advice_on(text), EXIT_FAILURE);
  } catch (const std::exception& error) {
    return refuse(error.what() + engine::advice_on(error.what()), EXIT_FAILURE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = command(argc, argv);
#ifdef __SANITIZE_ADDRESS__  // it looks for leaks when the program ends by itself
  return code;
#else
  // LibTorch's destructors unregister its operators one by one, which takes a fourth of the time of a short command.
  spdlog::shutdown();
  std::_Exit(code);
#endif
}
