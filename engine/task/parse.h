// The task parse: dependency trees, of which a network chooses the transitions of an arc-standard parser, and as scores
// attachment scores (docs/spec/tasks.md §4; Chen and Manning 2014).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/score/sentence_stats.h"
#include "engine/data/treebank.h"
#include "engine/model/parser_network.h"
#include "engine/task/arc_standard.h"
#include "engine/task/task_kind.h"
#include "engine/task/task_of.h"

namespace tearless::engine {

/// What the network reads of a configuration.
enum class ParserFeatures {
  kAll,           // 18 words, their tags, and the arc labels of the 12 that are children
  kWordsAndTags,  // the 18 words and their tags
};

/// Of the words s3, s2, s1 of the stack, b1, b2, b3 of the buffer, and for s1 and then s2 the children lc1, rc1, lc2,
/// rc2, lc1(lc1), rc1(rc1): words first, then tags, then labels (CoreNLP, DependencyParser.getFeatures).
int64_t feature_count(ParserFeatures features);
/// Appends the tokens of the features of a configuration of `tree`.
void add_features(ParserFeatures features, const Configuration& configuration, const EncodedTree& tree,
                  const Treebank& treebank, std::vector<int32_t>& tokens);

struct ParseOptions {
  TreebankOptions data;
  ParserNetworkOptions model;
  ParserFeatures features = ParserFeatures::kAll;  // [model]
  int64_t batch_examples = 1024;                   // [train.batch] examples
};

class Parse final : public TaskOf<ParseOptions, ReadyConfigurations> {
 public:
  /// Borrows all options, which must outlive the task.
  Parse(const ParseOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
        std::shared_ptr<const Treebank> treebank);

  int64_t schedule_width() const override { return 1; }
  Selection selection() const override;
  std::string dev_loss() const override { return "dev.loss"; }
  NamedNumbers evaluate() override;
  FinalScores final_scores() override;

  /// The trees that the parser gives these sentences, whose gold trees it does not read.
  std::vector<Configuration> parsed(const std::vector<EncodedTree>& sentences) const;

 private:
  /// Configurations with the transition that the gold tree asks for.
  struct Examples {
    std::vector<int32_t> tokens;       // [N · F]
    std::vector<int32_t> legal;        // [N] Legal
    std::vector<int32_t> transitions;  // [N]; -1 where training has no such label

    int64_t size() const { return std::ssize(transitions); }
  };
  /// Of the projective trees: no transitions lead to another one.
  Examples examples_of(const std::vector<EncodedTree>& trees) const;
  ReadyConfigurations ready(const Examples& examples, const std::vector<int32_t>& which) const;

  std::vector<std::vector<int32_t>> cut(int64_t pass) const override;
  ReadyConfigurations ready_examples(const std::vector<int32_t>& examples, uint32_t update) const override;
  CrossEntropySums model_loss(const ForwardContext& context, const ReadyConfigurations& batch) const override {
    return model_.loss(context, batch, train_.label_smoothing);
  }
  double loss_of(const Examples& examples) const;

  std::shared_ptr<const Treebank> treebank_;
  Transitions transitions_;
  ParserNetwork model_;
  Examples training_, dev_;
};

/// The statistics of each sentence, whose sums make the attachment scores (base/score/measures.h).
SentenceStats attachment_stats(const std::vector<EncodedTree>& gold, const std::vector<Configuration>& parsed);

}  // namespace tearless::engine
