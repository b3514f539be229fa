// The kind corpus: the counts of the prepared data that a run is trained on. Reads nothing of what the training left.
#include "base/error.h"
#include "engine/derived/derived_kind.h"

namespace tearless::engine {
namespace {

class CorpusKind final : public DerivedKindOf<CorpusKind> {
 public:
  CorpusKind() { meaning = "counts the prepared data: sentences, words, subwords, types, batches; it has no settings"; }

  void describe(SettingsVisitor&) override {}

  void check_consistent(const TaskKind&, const DerivedKind* of) override {
    if (of)
      fail("derived.kind = \"corpus\" counts the data of a trained run; it cannot derive from another derived run");
  }

  std::vector<std::string> score_names(const TaskKind& task) const override { return task.data_count_names(); }

  Reads reads() const override { return Reads::kSettings; }

  Derivation derive(const DerivationSource& from) override {
    const Counts counts = from.task.data_counts(from.train, from.say);
    return {.results = {.numbers = {counts.begin(), counts.end()}, .files = {}}};
  }
};

}  // namespace

std::unique_ptr<DerivedKind> corpus_derived() { return std::make_unique<CorpusKind>(); }

}  // namespace tearless::engine
