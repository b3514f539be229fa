// A whole classifier small enough for a test: options, parameters and Classifier in one, and batches written by hand.
#pragma once

#include <vector>

#include "engine/data/labelled_tokens.h"
#include "engine/model/classifier.h"
#include "tests/engine/model/tiny_model.h"

namespace tearless::engine::test {

/// Sentences are not empty.
inline LabelledBatch labelled_batch_of(const Sentences& sentences, const std::vector<int32_t>& labels,
                                       const std::vector<int32_t>& sentence_ids) {
  LabelledBatch batch;
  for (size_t i = 0; i < sentences.size(); ++i) append_sentence(batch.rows, sentences[i], sentence_ids[i]);
  batch.labels = labels;
  return batch;
}

struct TinyClassifier {
  ClassifierOptions options;
  Parameters parameters;
  Classifier classifier;

  TinyClassifier(const ClassifierOptions& o, int64_t vocabulary, int64_t classes, uint32_t init_seed = 1,
                 uint32_t dropout_seed = 2, at::Device device = at::kCPU, RowPrecision precision = RowPrecision::kFp32)
      : options(o),
        parameters(init_seed, device, precision),
        classifier(parameters, options, vocabulary, classes, dropout_seed) {
    parameters.allocate();
    at::set_num_threads(1);  // for so little work one thread is faster
  }
};

}  // namespace tearless::engine::test
