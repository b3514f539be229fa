// `tearless completion SHELL`: prints a script by which a shell completes command lines of tearless. The scripts ask
// `tearless completion words -- WORD …`, which prints what the last word can become, a line each, and after a tab what
// it means. It prints nothing where files of any kind are meant: these the shells complete themselves.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/console/command_line.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxRuns = 1000;  // whose ids are offered

// Shell → script.
const std::map<std::string, const char*> kScripts = {
    {"bash", R"script(# Completion of tearless in bash. Made by: tearless completion bash
_tearless() {
  mapfile -t COMPREPLY < <("$1" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
  [[ ${COMPREPLY[0]} != */ ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _tearless tearless
)script"},
    {"zsh", R"script(#compdef tearless
# Completion of tearless in zsh. Made by: tearless completion zsh
_tearless() {
  local -a found
  found=(${(f)"$($words[1] completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found == 0 )); then
    _files
  else
    found=(${${found//:/\\:}/$'\t'/:})
    _describe word found
  fi
}
if [[ $funcstack[1] == _tearless ]]; then
  _tearless "$@"  # this file was loaded as the function
else
  compdef _tearless tearless
fi
)script"},
    {"fish", R"script(# Completion of tearless in fish. Made by: tearless completion fish
function __tearless_words
  set -l before (commandline -opc)
  set -l found ($before[1] completion words -- $before[2..] (commandline -ct) 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c tearless -f -a '(__tearless_words)'
)script"}};

// Prints what a word can become.
class Completions {
 public:
  explicit Completions(std::string word) : word_(std::move(word)) {}

  void offer(const std::string& text, const std::string& help = "") const {
    if (text.starts_with(word_)) print("{}\t{}\n", text, help);
  }

  void options(const CommandText& command) const {
    if (!word_.starts_with("-")) return;
    for (const OptionText& option : command.options) {
      for (const std::string& name : option.names) offer(name, option.help);
    }
  }

  // And folders, which may hold some.
  void grid_files() const {
    const fs::path folder = fs::path(word_).parent_path();
    std::error_code unreadable;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, unreadable)) {
      const std::string path = (folder / entry.path().filename()).string();
      if (entry.is_directory(unreadable)) offer(path + "/");
      if (path.ends_with(".toml")) offer(path);
    }
  }

  void sweeps_and_runs(const Workspace& workspace) const {
    for (const std::string& word : fixed_words()) offer(word);
    const auto store = Store::open_reader(workspace);
    if (!store) return;
    size_t left = kMaxRuns;
    for (const Sweep& sweep : store->sweeps()) {
      offer(sweep.id, sweep.name);
      if (shell_word(sweep.name) == sweep.name) offer(sweep.name, sweep.id);
      for (const RunRecord& run : store->runs_of(sweep.id)) {
        if (left == 0) break;
        --left;
        offer(run.id, label_of(run));
      }
    }
  }

 private:
  std::string word_;
};

bool takes_value(const CommandText& command, const std::string& word) {
  return std::any_of(command.options.begin(), command.options.end(), [&](const OptionText& option) {
    return !option.value.empty() && std::find(option.names.begin(), option.names.end(), word) != option.names.end();
  });
}

// `words`: the command line after "tearless", to the word that is completed.
void print_words(const CommandLine& line, std::vector<std::string> words, fs::path workspace) {
  if (words.empty()) words.emplace_back();
  const Completions last(words.back());
  words.pop_back();
  const CommandText* command = nullptr;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (takes_value(line.program, *word) || (command && takes_value(*command, *word))) {
      const bool is_workspace = *word == "--workspace";
      if (++word == words.end()) return;
      if (is_workspace) workspace = *word;
    } else if (!command && !word->starts_with("-")) {
      const auto named = std::find_if(line.commands.begin(), line.commands.end(),
                                      [&](const CommandText& known) { return known.name == *word; });
      if (named == line.commands.end()) return;
      command = &*named;
    }
  }
  last.options(line.program);
  if (!command) {
    for (const CommandText& known : line.commands) last.offer(known.name, known.help);
    return;
  }
  last.options(*command);
  for (const ArgumentText& argument : command->arguments) {
    const bool is_selection = argument.name == "what" || argument.name == "left";
    if (is_selection) last.sweeps_and_runs(Workspace(workspace));
    if (is_selection || argument.name == "grid") last.grid_files();
  }
}

}  // namespace

Action command_completion(CLI::App& app, const Globals& globals) {
  const auto shell = std::make_shared<std::string>();
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("shell", *shell, "bash, zsh or fish; \"words\": what the last of the words after -- can become")
      ->required();
  app.add_option("words", *words)->group("");
  return [shell, words, &app, &globals]() -> int {
    if (*shell == "words") {
      print_words(command_line(*app.get_parent()), *words, globals.workspace);
      return kOk;
    }
    if (const auto script = kScripts.find(*shell); script != kScripts.end()) {
      fmt::print("{}", script->second);
      return kOk;
    }
    std::vector<std::string> shells;
    for (const auto& [name, text] : kScripts) shells.push_back(name);
    fail("there is no completion for \"{}\"{}; choose one of {}", *shell, did_you_mean(*shell, shells),
         fmt::join(shells, ", "));
  };
}

}  // namespace tearless::harness
