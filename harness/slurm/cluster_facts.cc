#include "harness/slurm/cluster_facts.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "base/words.h"

namespace tearless::harness {
namespace {

constexpr double kMaxSeconds = 15;  // of one call of scontrol

using Values = std::map<std::string, std::string, std::less<>>;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Of `show config`: lines "KillWait                = 30 sec".
Values values_of_lines(std::string_view text) {
  Values values;
  for (const std::string_view line : split_lines(text)) {
    const size_t equals = line.find('=');
    if (equals == line.npos) continue;
    values.emplace(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }
  return values;
}

// Of `show partition -o`: a line each, "PartitionName=gpu … GraceTime=0 …". Those of this one, or of the default.
Values values_of_partition(std::string_view text, const std::string& partition) {
  for (const std::string_view line : split_lines(text)) {
    Values values;
    for (const std::string_view word : split_words(line)) {
      const size_t equals = word.find('=');
      if (equals != word.npos) values.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    const bool is_it = partition.empty() ? values["Default"] == "YES" : values["PartitionName"] == partition;
    if (is_it && !values["PartitionName"].empty()) return values;
  }
  return {};
}

std::string value_of(const Values& values, std::string_view key) {
  const auto found = values.find(key);
  return found == values.end() ? "" : printable(found->second);
}

// The number that "30 sec" begins with.
std::optional<int64_t> number_of(const Values& values, std::string_view key) {
  const std::string text = value_of(values, key);
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && rest != text.data() && number >= 0;
  return is_number ? std::optional(number) : std::nullopt;
}

}  // namespace

ClusterFacts facts_of(const Said& config, const Said& partitions, const std::string& partition) {
  const Values all = config.code == 0 ? values_of_lines(config.output) : Values();
  const Values own = partitions.code == 0 ? values_of_partition(partitions.output, partition) : Values();
  ClusterFacts facts{
      .partition = value_of(own, "PartitionName"),
      .preempt_type = value_of(all, "PreemptType"),
      .preempt_mode = value_of(own, "PreemptMode"),
      .warns = value_of(all, "SlurmctldParameters").find("preempt_send_user_signal") != std::string::npos,
      .grace_seconds = number_of(own, "GraceTime"),
      .kill_wait_seconds = number_of(all, "KillWait"),
      .min_job_age_seconds = number_of(all, "MinJobAge"),
      .max_array_size = number_of(all, "MaxArraySize")};
  if (facts.preempt_mode.empty()) facts.preempt_mode = value_of(all, "PreemptMode");
  return facts;
}

ClusterFacts ask_for_facts(SlurmCommands& commands, const std::string& partition) {
  const Said config = say(commands, {"scontrol", "show", "config"}, kMaxSeconds);
  if (config.code != 0) return {};  // it is absent or slow, and would be again
  const Said partitions = say(commands, {"scontrol", "-o", "show", "partition"}, kMaxSeconds);
  return facts_of(config, partitions, partition);
}

std::string cost_of_preemption(const ClusterFacts& facts, int program_seconds) {
  if (facts.preempt_type.empty() || facts.preempt_mode.empty()) {
    return "whether jobs are preempted here is not known: scontrol did not say";
  }
  const std::string where = facts.partition.empty() ? "here" : "in partition " + facts.partition;
  if (facts.preempt_type == "preempt/none" || facts.preempt_mode == "OFF") return "no job is preempted " + where;
  if (facts.preempt_mode.find("SUSPEND") != std::string::npos) {
    return fmt::format(
        "a preempted job {} is suspended (PreemptMode={}): its runs continue later, or after 10 minutes "
        "elsewhere from their last checkpoints",
        where, facts.preempt_mode);
  }
  const std::string lost = "costs the updates since the last checkpoint";
  if (!facts.warns) {
    return fmt::format(
        "a preemption {} comes without a warning (SlurmctldParameters lacks preempt_send_user_signal) and {}", where,
        lost);
  }
  const int64_t grace = facts.grace_seconds.value_or(0);
  if (grace < program_seconds) {
    return fmt::format(
        "a preemption {} comes {} after its warning (GraceTime), and a run may need {} for a checkpoint: "
        "then it {}",
        where, counted(grace, "second"), program_seconds, lost);
  }
  return fmt::format(
      "a preemption {} comes {} after its warning (GraceTime), which is enough for a checkpoint: it costs "
      "seconds",
      where, counted(grace, "second"));
}

}  // namespace tearless::harness
