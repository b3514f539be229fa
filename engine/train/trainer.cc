#include "engine/train/trainer.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/files.h"
#include "engine/model/scope.h"
#include "engine/ops/memory.h"
#include "engine/train/execution.h"
#include "engine/train/model_file.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Throws DamagedCheckpoint, with these words, if the file does not begin like that.
void require_beginning(const std::filesystem::path& file, const FilePrefix& prefix, const std::string& words) {
  if (!begins_with(file, prefix)) throw DamagedCheckpoint(fmt::format("{} {}", file.string(), words));
}

/// Ends an attempt that is no longer the newest.
class Superseded : public std::exception {};

}  // namespace

std::string would_stop_metric(const Selection& selection) { return "would_stop." + selection.score; }

json DecodingTime::measured() const {
  if (sentences == 0) return json::object();
  return {{"decoding_seconds", seconds}, {"decoded_sentences", sentences}};
}

double Selection::rounded(double value) const {
  return std::strtod(fmt::format("{:.{}f}", value, decimals).c_str(), nullptr);
}

Trainer::Trainer(Task& task, const TrainOptions& train, const ExecutionOptions& execution, const RunDirectory& run,
                 int64_t attempt)
    : task_(task),
      train_(train),
      execution_(execution),
      run_(run),
      attempt_(attempt),
      loss_names_(task.loss_names()),
      selection_(compared_by(train.select, task.selection(), task.dev_loss())),
      checkpoints_(run),
      schedule_(new_schedule()),
      optimiser_(train.optimiser.chosen(), task.parameters().values()),
      buffers_{task.parameters().values(), optimiser_.buffers, task.carried()},
      updater_(make_updater(task, train, execution, optimiser_)) {}

ExitCode Trainer::run() {
  const Clock::time_point start = Clock::now();
  ExitCode outcome = kExitDone;
  try {
    end_if_superseded();
    restore();
    try {
      outcome = train_to_the_end();
    } catch (const StopRequested&) {
      // After a divergence the buffers are those of the model that was being scored.
      if (divergence_.empty()) checkpoint();
      spdlog::info("stopped on request after update {}; the same command resumes the run", state_.update);
      outcome = kExitStopped;
    }
    attempt_seconds_ = seconds_since(start);
    end_if_superseded();
    write_measured();
  } catch (const Superseded&) {
    spdlog::warn("attempt {} of {} ends, because a newer attempt has started", attempt_, run_.root().string());
    outcome = kExitStopped;
  }
  return outcome;
}

ExitCode Trainer::train_to_the_end() {
  bool went_back = false;
  while (true) {
    if (evaluation_due()) evaluate();
    const std::string reason = end_reason();
    if (reason.empty()) {
      throw_if_stopped();
      end_if_superseded();
      if (make_updates()) continue;
    }
    try {
      reason.empty() ? finish_diverged() : finish(reason);
      return reason.empty() ? kExitDiverged : kExitDone;
    } catch (const DamagedCheckpoint& damage) {
      if (went_back) throw;  // the same data was lost twice: the disk is at fault
      went_back = true;
      spdlog::warn("{}: training resumes from an older checkpoint and will give the same result", damage.what());
      divergence_.clear();
      updater_ = make_updater(task_, train_, execution_, optimiser_);  // one that has met a divergence goes no further
      restore();
    }
  }
}

// --- updates ---------------------------------------------------------------------------------------------------------

bool Trainer::make_updates() {
  const Clock::time_point start = Clock::now();
  // Where evaluations end passes, the loop below finds out.
  const int64_t between = train_.evaluate_updates == 0 ? train_.epoch_updates.value_or(TrainOptions::kUnlimited)
                                                       : train_.evaluate_updates.value_or(TrainOptions::kUnlimited);
  const int64_t to_evaluation = between - state_.update % between;
  const int64_t count = std::min({updater_->capacity(), to_evaluation, train_.update_limit() - state_.update});
  std::vector<double> learning_rates;
  for (int64_t n = state_.update + 1; n <= state_.update + count; ++n) {
    const int64_t pass = state_.pass;
    learning_rates.push_back(schedule_.learning_rate(n));  // set before the update that uses it
    for (int64_t i = 1; i < train_.accumulate; ++i) updater_->add(n, next_batch());
    updater_->start(n, next_batch(), learning_rates.back());
    if (state_.pass == pass) continue;
    state_.pass_ended_at = n;
    if (train_.counts_passes()) break;
  }
  const std::vector<UpdateResult> results = updater_->collect();
  for (size_t i = 0; i < results.size(); ++i) {
    divergence_ = divergence_of(results[i]);
    if (!divergence_.empty()) return false;
    account_for(results[i], learning_rates[i]);
  }
  training_seconds_ += seconds_since(start);
  return true;
}

std::string Trainer::divergence_of(const UpdateResult& result) const {
  const double loss = result.sums.mean();
  if (!std::isfinite(loss)) return "the loss is not finite";
  if (!result.finite()) return "the gradient is not finite";
  const double limit = train_.diverged_loss;
  return limit > 0 && loss > limit ? fmt::format("the loss {:.4g} is above train.diverged_loss = {:.4g}", loss, limit)
                                   : "";
}

int64_t Trainer::batches_in_pass() {
  if (started_pass_ != state_.pass) {
    batches_in_pass_ = task_.start_pass(state_.pass);
    started_pass_ = state_.pass;
  }
  return batches_in_pass_;
}

int64_t Trainer::next_batch() {
  const int64_t batch = state_.batch, batches = batches_in_pass();
  if (batch == 0) {
    for (at::Tensor& carried : buffers_.carried) carried.zero_();
  }
  if (++state_.batch == batches) {
    state_.batch = 0;
    ++state_.pass;
  }
  return batch;
}

void Trainer::account_for(const UpdateResult& result, double learning_rate) {
  rows_seen_ += result.rows;
  ++state_.update;
  state_.epoch += result.sums;
  state_.report += result.sums;
  state_.norm_sum += result.gradient_norm;
  state_.report_norm_sum += result.gradient_norm;
  for (const auto& [group, norm] : result.group_norms) {
    auto& [sum, updates] = state_.report_group_norms[group];
    sum += norm;
    ++updates;
  }
  state_.norm_max = std::max(state_.norm_max, result.gradient_norm);
  unwritten_norms_.push_back(static_cast<float>(result.gradient_norm));
  if (state_.update % execution_.log_updates == 0) {
    end_if_superseded();
    write_metric("train.loss", state_.report.mean());
    write_metric("train.lr", learning_rate);
    write_metric("train.grad_norm", result.gradient_norm);
    // Not log_updates, which another attempt may have had otherwise.
    const auto norms = static_cast<double>(state_.update - state_.reported_at);
    write_metric("train.grad_norm_window_mean", state_.report_norm_sum / norms);
    for (const auto& [name, value] : result.observed) write_metric(name, value);
    for (const auto& [group, norm] : result.group_norms) {
      const auto& [sum, updates] = state_.report_group_norms.at(group);
      write_metric("grad_norm_window_mean." + group, sum / static_cast<double>(updates));
    }
    write_gradient_norms();
    state_.report = {};
    state_.report_norm_sum = 0;
    state_.report_group_norms.clear();
    state_.reported_at = state_.update;
  }
  if (updates_made_++ == 0 && result.fallback_ops > 0) {
    spdlog::warn("{} operations of an update run by their formulas, which is slow: {}", result.fallback_ops,
                 execution_.ops == ExecutionOptions::Ops::kReference ? "run.ops = \"reference\" asks for it"
                                                                     : "there are no kernels for them");
  }
  fallback_ops_ += result.fallback_ops;
  state_.loss_sum += result.sums.mean();
  if (!epoch_ended()) return;
  write_metric("train.loss_sum", state_.loss_sum);
  state_.loss_sum = 0;
}

// --- evaluation and the end of training ------------------------------------------------------------------------------

bool Trainer::evaluation_due() const {
  if (state_.update == state_.evaluated_at) return false;
  if (at_limit()) return true;
  if (!train_.evaluate_updates) return pass_ended();
  return *train_.evaluate_updates == 0 ? epoch_ended() : state_.update % *train_.evaluate_updates == 0;
}

double Trainer::epochs_made() {
  if (train_.epoch_updates) return static_cast<double>(state_.update) / static_cast<double>(*train_.epoch_updates);
  const auto passes = static_cast<double>(state_.pass);
  if (state_.batch == 0) return passes;  // the next pass need not be cut into batches for this
  return passes + static_cast<double>(state_.batch) / static_cast<double>(batches_in_pass());
}

void Trainer::evaluate() {
  const Clock::time_point start = Clock::now();
  report(Phase::kEvaluating);
  NamedNumbers numbers = task_.evaluate();
  end_if_superseded();
  numbers.merge(task_.training_numbers(state_.epoch));
  const double compared = selection_value(numbers);
  write_metric("epoch", epochs_made());
  std::string line;
  for (const auto& [name, value] : numbers) {
    write_metric(name, value);
    line += fmt::format("  {} {:.2f}", name, value);
  }
  for (const auto& [name, length] : learned_lengths(task_.parameters())) write_metric(name, length);
  ++state_.since_best;
  if (state_.evaluated_at == 0 || compared > state_.best_selection) {
    state_.since_best = 0;
    state_.best_selection = compared;
  }
  observe_early_stop();
  state_.evaluated_at = state_.update;
  state_.epoch = {};
  select(train_.select, epoch_ended(), {state_.update, compared, std::move(numbers)}, state_.selected);
  schedule_.on_evaluation(compared, state_.update);
  spdlog::info("update {}{}  selected {}", state_.update, line, fmt::join(selected_steps(), ", "));
  checkpoint_or_keep();
  report(Phase::kTraining);
  ++evaluations_made_;
  evaluation_seconds_ += seconds_since(start);
}

void Trainer::observe_early_stop() {
  const int64_t patience = execution_.observe.early_stop;
  if (train_.early_stop > 0 || patience == 0 || state_.since_best < patience || state_.would_stop_at > 0) return;
  state_.would_stop_at = state_.update;
  write_metric(would_stop_metric(selection_),
               selection_.higher_is_better ? state_.best_selection : -state_.best_selection);
}

std::string Trainer::end_reason() const {
  if (at_limit()) return epochs() >= train_.max_epochs ? "max_epochs" : "max_updates";
  if (state_.update != state_.evaluated_at) return "";
  if (train_.early_stop > 0 && state_.since_best >= train_.early_stop) return "early_stop";
  if (state_.update > 0 && schedule_.exhausted(state_.update, train_.min_lr)) return "min_lr";
  return "";
}

Trainer::Results Trainer::results() {
  write_kept();
  report(Phase::kEvaluating);
  const std::vector<int64_t> steps = selected_steps();
  if (std::ssize(steps) < train_.select.count) {
    spdlog::warn(
        "the model has {} of train.select.count = {} checkpoints, because training ended before there were more",
        steps.size(), train_.select.count);
  }
  checkpoints_.read_mean(steps, buffers_);
  task_.parameters().update_bf16_copy();
  json scores = json::object();
  for (const auto& [name, value] : state_.selected.back().numbers) scores[name] = value;
  if (steps.size() > 1) {  // no evaluation was of their mean
    for (const auto& [name, value] : task_.evaluate()) scores[name] = value;
  }
  FinalScores final_scores = task_.final_scores();
  for (const auto& [name, value] : final_scores.numbers) scores[name] = value;
  for (const auto& [name, length] : learned_lengths(task_.parameters())) scores[name] = length;
  scores["train.grad_norm_mean"] = state_.norm_sum / static_cast<double>(state_.update);
  scores["train.grad_norm_max"] = state_.norm_max;
  scores["parameters"] = task_.parameters().count();
  scores["selected_step"] = steps.back();
  if (train_.select.count > 1) scores["averaged_checkpoints"] = steps.size();
  scores["updates"] = state_.update;
  decoding_ = final_scores.time;
  return {std::move(scores), std::move(final_scores.files)};
}

void Trainer::publish(const Results& results, const std::string& outcome, int64_t step, const std::string& reason) {
  end_if_superseded();
  report(Phase::kPublishing);
  sync_files();
  constexpr const char* kChanged = "no longer holds what was written to it";
  require_beginning(run_.metrics(), metrics_->written(), kChanged);
  require_beginning(run_.gradient_norms(), gradient_norms_->written(), kChanged);
  std::vector<std::string> files = write_results(run_, results.scores, results.files);
  files.insert(files.end(), {"gradient_norms.f32", "metrics.jsonl"});
  write_model(run_, task_.parameters(), selected_steps());
  end_if_superseded();
  write_done(run_, outcome, step, reason, files);
}

void Trainer::finish(const std::string& reason) {
  publish(results(), "done", state_.update, reason);
  spdlog::info("done after update {} ({}); the model is that of update {}", state_.update, reason,
               fmt::join(selected_steps(), ", "));
}

void Trainer::finish_diverged() {
  const int64_t step = state_.update + 1;
  spdlog::warn("diverged at update {}: {}", step, divergence_);
  end_if_superseded();
  if (!state_.selected.empty()) {
    Results of_the_best = results();
    of_the_best.scores["diverged_step"] = step;
    publish(of_the_best, "diverged", step, divergence_);
    spdlog::info("the scores are those of update {}", fmt::join(selected_steps(), ", "));
    return;
  }
  report(Phase::kPublishing);
  sync_files();
  write_done(run_, "diverged", step, divergence_, {"gradient_norms.f32", "metrics.jsonl"});
}

// --- checkpoints, metrics and measurements ---------------------------------------------------------------------------

void Trainer::write_metric(const std::string& name, double value) {
  metrics_->append(
      fmt::format("{{\"step\": {}, \"name\": \"{}\", \"value\": {}}}\n", state_.update, name, json(value).dump()));
}

void Trainer::write_gradient_norms() {
  static_assert(std::endian::native == std::endian::little);
  gradient_norms_->append(
      {reinterpret_cast<const char*>(unwritten_norms_.data()), unwritten_norms_.size() * sizeof(unwritten_norms_[0])});
  unwritten_norms_.clear();
}

void Trainer::sync_files() {
  write_gradient_norms();
  metrics_->sync();
  gradient_norms_->sync();
}

void Trainer::checkpoint() {
  if (state_.update == 0) return;  // the initial state is a function of the seed
  end_if_superseded();
  report(Phase::kPublishing);
  sync_files();
  state_.metrics = metrics_->written();
  state_.gradient_norms = gradient_norms_->written();
  const Clock::time_point start = Clock::now();
  write_kept();
  // Prune only after writing a new checkpoint. An existing one may date from before this step's evaluation, and it
  // needs the checkpoints that were selected at that time.
  if (!checkpoints_.write(state_.update, buffers_, state_as_json())) return;
  checkpoints_.prune(execution_.keep_checkpoints, selected_steps());
  checkpoint_written_ = Clock::now();
  checkpoint_seconds_ = seconds_since(start);
}

void Trainer::write_kept() {
  const std::optional<Kept> kept = std::exchange(kept_, std::nullopt);
  if (!kept || !is_selected(kept->step)) return;
  end_if_superseded();
  sync_files();  // its state names their beginnings
  checkpoints_.write(kept->step, kept->buffers, kept->state);
}

void Trainer::checkpoint_or_keep() {
  const bool ends = at_limit() || !end_reason().empty();  // then a later one may not come
  const double since = checkpoint_written_ ? seconds_since(*checkpoint_written_) : 0;
  if (ends || checkpoint_is_due(execution_.checkpoint_share, buffers_.bytes(), since, checkpoint_seconds_)) {
    return checkpoint();
  }
  if (!is_selected(state_.update)) return;
  end_if_superseded();
  write_kept();  // where the model is made of both
  write_gradient_norms();
  state_.metrics = metrics_->written();
  state_.gradient_norms = gradient_norms_->written();
  kept_ = Kept{state_.update, buffers_.copy(), state_as_json()};
}

bool Trainer::is_selected(int64_t step) const {
  return std::ranges::any_of(state_.selected, [&](const SelectedStep& selected) { return selected.step == step; });
}

void Trainer::end_if_superseded() const {
  if (run_.newest_attempt() != attempt_) throw Superseded();
}

void Trainer::restore() {
  report(Phase::kPreparing);
  metrics_.reset();
  gradient_norms_.reset();
  unwritten_norms_.clear();
  kept_.reset();
  std::optional<int64_t> step;
  while ((step = checkpoints_.newest())) {
    try {
      restore_from(*step);
      break;
    } catch (const DamagedCheckpoint& damage) {
      spdlog::warn("{}: the checkpoint of update {} is removed; the run resumes from an older one or from the start",
                   damage.what(), *step);
      checkpoints_.remove(*step);
    }
  }
  if (step) {
    spdlog::info("resuming after update {}", *step);
  } else {
    restore_start();
  }
  started_pass_ = -1;
  metrics_.emplace(run_.metrics(), state_.metrics.bytes);
  gradient_norms_.emplace(run_.gradient_norms(), state_.gradient_norms.bytes);
  metrics_kept_bytes_ = state_.metrics.bytes;
  report(Phase::kTraining);
}

void Trainer::restore_from(int64_t step) {
  const StoredCheckpoint stored = checkpoints_.read(step, buffers_);
  State state = state_from_json(stored.state);
  Schedule schedule = new_schedule();
  schedule.restore(stored.state.at("schedule"));
  for (const SelectedStep& selected : state.selected) {
    if (selected.step != step) checkpoints_.read(selected.step, buffers_);
  }
  const std::string changed = fmt::format("no longer begins with what it held at update {}", step);
  require_beginning(run_.metrics(), state.metrics, changed);
  require_beginning(run_.gradient_norms(), state.gradient_norms, changed);
  stored.copy_to(buffers_);
  task_.parameters().update_bf16_copy();
  state_ = std::move(state);
  schedule_ = std::move(schedule);
}

void Trainer::restore_start() {
  if (state_.update > 0) task_.parameters().initialise();
  for (at::Tensor& buffer : optimiser_.buffers) buffer.zero_();
  state_ = {};
  schedule_ = new_schedule();
}

double Trainer::selection_value(const NamedNumbers& evaluation) const {
  const double rounded = selection_.rounded(evaluation.at(selection_.score));
  return selection_.higher_is_better ? rounded : -rounded;
}

std::vector<int64_t> Trainer::selected_steps() const {
  std::vector<int64_t> steps;
  for (const SelectedStep& selected : state_.selected) steps.push_back(selected.step);
  return steps;
}

template <class F>
void Trainer::State::for_each_field(F&& f) {
  f("update", update);
  f("pass", pass);
  f("batch", batch);
  f("pass_ended_at", pass_ended_at);
  f("evaluated_at", evaluated_at);
  f("reported_at", reported_at);
  f("since_best", since_best);
  f("best_selection", best_selection);
  f("would_stop_at", would_stop_at);
  f("selected", selected);
  f("epoch", epoch);
  f("report", report);
  f("loss_sum", loss_sum);
  f("norm_sum", norm_sum);
  f("norm_max", norm_max);
  f("report_norm_sum", report_norm_sum);
  f("report_group_norms", report_group_norms);
  f("metrics_bytes", metrics.bytes);
  f("metrics_sha256", metrics.sha256);
  f("gradient_norms_bytes", gradient_norms.bytes);
  f("gradient_norms_sha256", gradient_norms.sha256);
}

json Trainer::state_as_json() {
  json out = {{"schedule", schedule_.state()}};
  state_.for_each_field([&]<class Field>(const char* name, const Field& field) {
    if constexpr (std::is_same_v<Field, LossSums>) {
      json& sums = out[name] = {{"predictions", field.predictions}};
      for (size_t i = 0; i < field.values.size(); ++i) sums[loss_names_[i]] = field.values[i];
    } else {
      out[name] = field;
    }
  });
  return out;
}

Trainer::State Trainer::state_from_json(const json& state) const {
  State read;
  read.for_each_field([&]<class Field>(const char* name, Field& field) {
    const json& value = state.at(name);
    if constexpr (std::is_same_v<Field, LossSums>) {
      field.predictions = value.at("predictions");
      if (field.predictions == 0) return;
      for (const std::string& loss : loss_names_) field.values.push_back(value.at(loss));
    } else {
      value.get_to(field);
    }
  });
  return read;
}

void Trainer::write_measured() const {
  json measured = {
      {"tokens_per_second", training_seconds_ > 0 ? static_cast<double>(rows_seen_) / training_seconds_ : 0.0},
      {"peak_memory_bytes", peak_memory_bytes()},
      {"threads", at::get_num_threads()},
      {"fallback_ops", fallback_ops_},
      {"updates", updates_made_},
      {"seconds", attempt_seconds_},
      {"training_seconds", training_seconds_},
      {"evaluations", evaluations_made_},
      {"evaluation_seconds", evaluation_seconds_},
      {"metrics_kept_bytes", metrics_kept_bytes_}};
  measured.update(decoding_.measured());
  write_atomically(run_.attempt(attempt_) / "measured.json", measured.dump(2) + "\n");
}

}  // namespace tearless::engine
