#include "harness/service/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/memory_size.h"
#include "base/words.h"
#include "harness/runs/states.h"

namespace tearless::harness {

void to_json(nlohmann::json& j, const Progress& progress) {
  j = {{"id", progress.id},
       {"label", progress.label},
       {"axes", progress.axes},
       {"step", progress.step},
       {"updates", progress.updates},
       {"loss", progress.loss},
       {"dev_name", progress.dev_name},
       {"dev_score", progress.dev_score},
       {"updates_per_second", progress.updates_per_second},
       {"tokens_per_second", progress.tokens_per_second},
       {"seconds_left", progress.seconds_left()},
       {"stopping", progress.stopping},
       {"phase", progress.phase},
       {"waits_for", progress.waits_for}};
}

void from_json(const nlohmann::json& j, Progress& progress) {
  j.at("id").get_to(progress.id);
  j.at("label").get_to(progress.label);
  j.at("axes").get_to(progress.axes);
  j.at("step").get_to(progress.step);
  j.at("updates").get_to(progress.updates);
  j.at("loss").get_to(progress.loss);
  j.at("dev_name").get_to(progress.dev_name);
  j.at("dev_score").get_to(progress.dev_score);
  j.at("updates_per_second").get_to(progress.updates_per_second);
  j.at("tokens_per_second").get_to(progress.tokens_per_second);
  j.at("stopping").get_to(progress.stopping);
  j.at("phase").get_to(progress.phase);
  j.at("waits_for").get_to(progress.waits_for);
}

const SweepFacts* ServiceFacts::sweep(const std::string& id) const {
  for (const SweepFacts& facts : sweeps) {
    if (facts.id == id) return &facts;
  }
  return nullptr;
}

std::vector<std::string> changes_of(const SubmissionFacts& facts) {
  std::vector<std::string> changes;
  if (facts.kept_place) changes.emplace_back("keeps its place in the queue");
  if (facts.resumed) changes.emplace_back("is resumed");
  for (const auto& [state, runs] : facts.queued_again)
    changes.push_back(fmt::format("{} {} queued again", runs, state));
  if (facts.new_build) changes.emplace_back("is trained by the present build from now on");
  for (const std::string& other : facts.replaced) changes.push_back(fmt::format("replaces {}", other));
  for (const std::string& other : facts.beside) {
    changes.push_back(fmt::format("{} of the same file is not over (submit --replace cancels it)", other));
  }
  return changes;
}

std::string summary_of(const SubmissionFacts& facts) {
  StateCounts counts;
  int64_t all = 0, with_result = 0, ended = 0;
  for (const auto& [name, runs] : facts.states) {
    const RunState state = state_named(name);
    counts[state] = runs;
    all += runs;
    if (has_result(state)) with_result += runs;
    if (is_inactive(state)) ended += runs;
  }
  std::string text = counted(all, "run");
  if (with_result == all) {
    text += ": all have results, there is nothing to do";
  } else if (ended == all) {
    text += fmt::format(": {}; nothing to do{}", text_of(counts),
                        counts.contains(RunState::kFailed) ? "; --retry tries failed runs again" : "");
  } else if (with_result > 0) {
    text += fmt::format(", {} with results", with_result);
  }
  const std::vector<std::string> changes = changes_of(facts);
  return changes.empty() ? text : fmt::format("{}; {}", text, fmt::join(changes, ", "));
}

std::string summary_of(const SweepFacts& facts) {
  std::string text = fmt::format("{} of {} ended, {} running", facts.ended(), facts.total, facts.running);
  if (facts.granted > 0) text += fmt::format(", {} granted", facts.granted);
  if (facts.silent > 0) text += fmt::format(", {} silent", facts.silent);
  text += fmt::format(", {} waiting", facts.waiting);
  if (facts.held > 0) text += fmt::format(", {} held", facts.held);
  if (facts.seconds_left && facts.running > 0) {
    text += fmt::format(" · {}{} left", facts.untimed > 0 ? "over " : "", duration_text(facts.seconds_left));
  }
  if (const std::string speed = speed_text(facts.attempts); !speed.empty()) text += " · " + speed;
  return text;
}

std::string time_left_text(const std::vector<SweepFacts>& all, const std::set<std::string>& together) {
  double seconds = 0;
  for (const SweepFacts& sweep : all) {
    if (!together.contains(sweep.id) || sweep.waiting + sweep.running == 0) continue;
    if (!sweep.seconds_left || sweep.untimed > 0) return "";
    seconds += *sweep.seconds_left;
  }
  if (together.size() < 2 || seconds == 0) return "";
  return fmt::format(" · all {} sweeps: at most {} left", together.size(), duration_text(seconds));
}

std::string summary_of(const DeviceFacts& facts) {
  const std::string text =
      fmt::format("GPU {}  {}  {}, {} of {} reserved", facts.index, facts.name, counted(facts.runs, "run"),
                  memory_text(facts.reserved_bytes), memory_text(facts.memory_bytes));
  return facts.closed.empty() ? text : fmt::format("{}; takes no run: it {}", text, facts.closed);
}

}  // namespace tearless::harness
