// The kind evaluate: the model of a trained run reads dev or test once more, in other segments or with another memory.
#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/derived/derived_kind.h"
#include "engine/derived/overlay.h"
#include "engine/task/language_model.h"

namespace tearless::engine {
namespace {

enum class EvaluatedSet { kDev, kTest };
constexpr auto kEvaluatedSets = std::to_array<std::string_view>({"dev", "test"});

class EvaluateKind final : public DerivedKindOf<EvaluateKind> {
 public:
  EvaluateKind() {
    meaning =
        "reads dev or test once more with the run's language model; settings that are unset are as in the run's "
        "[evaluate]";
  }

  void describe(SettingsVisitor& v) override {
    v.choice({.key = "set", .meaning = "dev or test", .neutral = "test"}, set_, kEvaluatedSets);
    evaluation_.describe(v, SegmentEvaluation());
  }

  void check_consistent(const TaskKind& task, const DerivedKind* of) override {
    if (!options_of<LanguageModelOptions>(task)) {
      fail("derived.kind = \"evaluate\" is for runs of task = \"language_model\", not of \"{}\"", task.name);
    }
    if (of) fail("derived.kind = \"evaluate\" needs a trained run; it cannot derive from another derived run");
  }

  std::vector<std::string> score_names(const TaskKind&) const override { return bit_names(set()); }

  Reads reads() const override { return Reads::kModel; }

  Derivation derive(const DerivationSource& from) override {
    const auto& options = *options_of<LanguageModelOptions>(from.task);
    SegmentEvaluation evaluation = options.evaluate;
    evaluation_.apply(evaluation);
    const auto text = text_for(options, evaluation, from.say);
    LanguageModel model(options, from.train, from.execution, text);
    const std::pair<std::string, std::string> read = read_model_of(from, model);
    return {.results = model.evaluated(set(), set_ == EvaluatedSet::kDev ? text->dev : text->test, evaluation),
            .inputs = {read}};
  }

  std::string set() const override { return std::string(kEvaluatedSets[static_cast<size_t>(set_)]); }

 private:
  EvaluatedSet set_ = EvaluatedSet::kTest;
  Overlay<SegmentEvaluation> evaluation_;
};

}  // namespace

std::unique_ptr<DerivedKind> evaluate_derived() { return std::make_unique<EvaluateKind>(); }

}  // namespace tearless::engine
