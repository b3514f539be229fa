#include "harness/service/facts.h"

#include <fmt/format.h>

#include "base/memory_size.h"
#include "base/words.h"

namespace tearless::harness {
using nlohmann::json;
namespace {

json optional_number(const std::optional<double>& value) { return value ? json(*value) : json(); }
std::optional<double> optional_number_from(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
}

Progress progress_from(const json& j) {
  Progress progress;
  progress.id = j.at("id");
  progress.label = j.at("label");
  progress.axes = j.at("axes");
  progress.step = j.at("step");
  progress.updates = j.at("updates");
  progress.loss = optional_number_from(j.at("loss"));
  progress.dev_name = j.at("dev_name");
  progress.dev_score = optional_number_from(j.at("dev_score"));
  progress.updates_per_second = j.at("updates_per_second");
  progress.tokens_per_second = optional_number_from(j.at("tokens_per_second"));
  progress.stopping = j.at("stopping");
  return progress;
}

DeviceFacts device_facts_from(const json& j) {
  return {.index = j.at("index"),
          .uuid = j.at("uuid"),
          .name = j.at("name"),
          .memory_bytes = j.at("memory_bytes"),
          .reserved_bytes = j.at("reserved_bytes"),
          .runs = j.at("runs"),
          .closed = j.at("closed")};
}

SweepFacts sweep_facts_from(const json& j) {
  SweepFacts facts{.id = j.at("id"),
                   .title = j.at("title"),
                   .state = j.at("state"),
                   .reason = j.at("reason"),
                   .priority = j.at("priority"),
                   .total = j.at("total"),
                   .waiting = j.at("waiting"),
                   .running = j.at("running"),
                   .seconds_left = optional_number_from(j.at("seconds_left")),
                   .attempts = {}};
  for (const json& attempt : j.at("attempts")) facts.attempts.push_back(progress_from(attempt));
  return facts;
}

}  // namespace

const SweepFacts* ServiceFacts::sweep(const std::string& id) const {
  for (const SweepFacts& facts : sweeps) {
    if (facts.id == id) return &facts;
  }
  return nullptr;
}

json to_json(const Progress& progress) {
  return {{"id", progress.id},
          {"label", progress.label},
          {"axes", progress.axes},
          {"step", progress.step},
          {"updates", progress.updates},
          {"loss", optional_number(progress.loss)},
          {"dev_name", progress.dev_name},
          {"dev_score", optional_number(progress.dev_score)},
          {"updates_per_second", progress.updates_per_second},
          {"tokens_per_second", optional_number(progress.tokens_per_second)},
          {"seconds_left", optional_number(progress.seconds_left())},
          {"stopping", progress.stopping}};
}

json to_json(const SweepFacts& facts) {
  json attempts = json::array();
  for (const Progress& attempt : facts.attempts) attempts.push_back(to_json(attempt));
  return {{"id", facts.id},
          {"title", facts.title},
          {"state", facts.state},
          {"reason", facts.reason},
          {"priority", facts.priority},
          {"total", facts.total},
          {"waiting", facts.waiting},
          {"running", facts.running},
          {"seconds_left", optional_number(facts.seconds_left)},
          {"attempts", std::move(attempts)}};
}

json to_json(const DeviceFacts& facts) {
  return {{"index", facts.index},
          {"uuid", facts.uuid},
          {"name", facts.name},
          {"memory_bytes", facts.memory_bytes},
          {"reserved_bytes", facts.reserved_bytes},
          {"runs", facts.runs},
          {"closed", facts.closed}};
}

json to_json(const ServiceFacts& facts) {
  json devices = json::array();
  for (const DeviceFacts& device : facts.devices) devices.push_back(to_json(device));
  json sweeps = json::array();
  for (const SweepFacts& sweep : facts.sweeps) sweeps.push_back(to_json(sweep));
  return {{"stays", facts.stays},
          {"build", facts.build},
          {"arguments", facts.arguments},
          {"busy", facts.busy},
          {"ends", facts.ends},
          {"pid", facts.pid},
          {"started_at", facts.started_at},
          {"devices", std::move(devices)},
          {"sweeps", std::move(sweeps)}};
}

ServiceFacts service_facts_from(const json& j) {
  ServiceFacts facts{.stays = j.at("stays"),
                     .build = j.at("build"),
                     .arguments = j.at("arguments"),
                     .busy = j.at("busy"),
                     .ends = j.at("ends"),
                     .pid = j.at("pid"),
                     .started_at = j.at("started_at"),
                     .devices = {},
                     .sweeps = {}};
  for (const json& device : j.at("devices")) facts.devices.push_back(device_facts_from(device));
  for (const json& sweep : j.at("sweeps")) facts.sweeps.push_back(sweep_facts_from(sweep));
  return facts;
}

std::string summary_of(const SweepFacts& facts) {
  std::string text =
      fmt::format("{}/{} ended, {} running, {} waiting", facts.ended(), facts.total, facts.running, facts.waiting);
  if (facts.seconds_left && facts.running > 0)
    text += fmt::format(" · about {} to go", duration_text(facts.seconds_left));
  return text;
}

std::string summary_of(const DeviceFacts& facts) {
  const std::string text =
      fmt::format("GPU {}  {}  {}, {} of {} reserved", facts.index, facts.name, counted(facts.runs, "run"),
                  memory_text(facts.reserved_bytes), memory_text(facts.memory_bytes));
  return facts.closed.empty() ? text : fmt::format("{}; takes no run: it {}", text, facts.closed);
}

}  // namespace tearless::harness
