// The kind analyse: the gradients of the first update of training, at the initial model or at the run's model, by layer
// and at the sublayers (docs/spec/training.md §7.3, §7.5; DS Figure 1 and Table 1).
//
// Of a sublayer F with r = x + drop(F(x)) and o = norm(r), δ the gradient of the loss at these points (DS §4):
//   β_LN = ‖δ_r‖ / ‖δ_o‖      β_RC = ‖δ_x‖ / ‖δ_r‖      β = ‖δ_x‖ / ‖δ_o‖
// δ_x has come by the shortcut and through F; δ_o from all that read o, so that of the encoder's last layer from every
// decoder layer.
#include <array>
#include <memory>
#include <set>
#include <string_view>

#include "base/error.h"
#include "engine/analyse/first_update.h"
#include "engine/derived/derived_kind.h"
#include "engine/train/observe.h"

namespace tearless::engine {
namespace {

enum class When { kStart, kEnd };
constexpr auto kWhens = std::to_array<std::string_view>({"start", "end"});

enum class Ratio { kSumVector, kPerElement };
constexpr auto kRatios = std::to_array<std::string_view>({"sum_vector", "per_element"});

/// The numbers of a sublayer, in the order of Table 1.
constexpr auto kSublayerScores = std::to_array<std::string_view>({"beta_ln", "beta_rc", "beta", "residual_variance"});
using SublayerScores = std::array<double, kSublayerScores.size()>;

SublayerScores scores_of(const SublayerGradients& sublayer, double GradientNorms::*norm) {
  const double x = sublayer.input.*norm, r = sublayer.sum.*norm, o = sublayer.output.*norm;
  return {r / o, x / r, x / o, sublayer.variance};
}

/// "encoder.3.ffn" with `number` in place of the 3; with "" "encoder.ffn".
std::string at_layer(const std::string& name, const std::string& number) {
  const std::string layer = layer_of(name), stack = layer.substr(0, layer.find('.'));
  return stack + (number.empty() ? "" : ".") + number + name.substr(layer.size());
}

std::string score_name(std::string_view what, const std::string& place) { return std::string(what) + "." + place; }

NamedNumbers numbers_of(const FirstUpdate& update, double GradientNorms::*norm) {
  NamedNumbers numbers;
  std::map<std::string, int64_t> layers;  // of each kind of sublayer: "encoder.ffn" → 12
  for (const auto& [layer, gradient_norm] : update.layers) numbers[score_name("grad_norm", layer)] = gradient_norm;
  for (const auto& [sublayer, gradients] : update.sublayers) ++layers[at_layer(sublayer, "")];
  for (const auto& [sublayer, gradients] : update.sublayers) {
    const SublayerScores scores = scores_of(gradients, norm);
    const std::string every = at_layer(sublayer, "");
    for (size_t i = 0; i < scores.size(); ++i) {
      numbers[score_name(kSublayerScores[i], sublayer)] = scores[i];
      numbers[score_name(kSublayerScores[i], every)] += scores[i] / static_cast<double>(layers.at(every));
    }
  }
  return numbers;
}

/// The sublayers of the task's model, without the numbers of their layers: "encoder.*.ffn".
std::set<std::string> sublayer_places(const TaskKind& task) {
  std::set<std::string> sublayers;
  for (const ParameterSpec& spec : task.model_parameters()->specs()) {
    const std::string group = parameter_group(spec.name);
    if (!layer_of(group).empty()) sublayers.insert(at_layer(group, "*"));
  }
  return sublayers;
}

class AnalyseKind final : public DerivedKindOf<AnalyseKind> {
 public:
  AnalyseKind() {
    meaning =
        "analyses the gradients of the first update: their norm by layer, and of each sublayer their ratios and the "
        "variance of the residual sum; trains nothing";
  }

  void describe(SettingsVisitor& v) override {
    v.choice({.key = "at",
              .meaning = "of which model: `start`, the initial one, for which no model file is read; `end`, the one "
                         "that the run's scores are of"},
             at_, kWhens);
    v.choice({.key = "ratio",
              .meaning = "the norm in the ratios: `sum_vector`, of the gradient summed over all rows, as in DS' Table "
                         "1; `per_element`, of the gradient of each row"},
             ratio_, kRatios);
  }

  void check_consistent(const TaskKind& task, const DerivedKind* of) override {
    if (of) fail("derived.kind = \"analyse\" analyses a trained run; it cannot derive from another derived run");
    if (sublayer_places(task).empty()) {
      fail("derived.kind = \"analyse\" is for models of layers and sublayers, which task = \"{}\" does not have",
           task.name);
    }
  }

  std::vector<std::string> score_names(const TaskKind& task) const override {
    std::set<std::string> names;
    for (const std::string& sublayer : sublayer_places(task)) {
      const std::string stack = sublayer.substr(0, sublayer.find('.'));
      names.insert(score_name("grad_norm", stack + ".*"));
      for (const std::string_view what : kSublayerScores) {
        names.insert({score_name(what, sublayer), score_name(what, stack + sublayer.substr(sublayer.rfind('.')))});
      }
    }
    return {names.begin(), names.end()};
  }

  Reads reads() const override { return at_ == When::kStart ? Reads::kSettings : Reads::kModel; }
  bool needs_device() const override { return true; }

  Derivation derive(const DerivationSource& from) override {
    Derivation derived;
    const std::unique_ptr<Task> task = from.task.make(from.train, from.execution, from.say);
    if (at_ == When::kEnd) derived.inputs.insert(read_model_of(from, *task));
    derived.results.numbers =
        numbers_of(analyse_first_update(*task, from.train, from.execution),
                   ratio_ == Ratio::kSumVector ? &GradientNorms::of_sum : &GradientNorms::of_elements);
    return derived;
  }

 private:
  When at_ = When::kStart;
  Ratio ratio_ = Ratio::kSumVector;
};

}  // namespace

std::unique_ptr<DerivedKind> analyse_derived() { return std::make_unique<AnalyseKind>(); }

}  // namespace tearless::engine
