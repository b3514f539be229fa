// What runs are called on screens and in messages.
#include <gtest/gtest.h>

#include "harness/runs/run.h"

namespace tearless::harness::label_test {
namespace {

TEST(Label, OfANumberOrATruthValueSaysWhatItIsOf) {
  EXPECT_EQ(label_of(Labels{{"model.norm.kind", "layer_norm"}, {"model.layers", "4"}, {"train.bf16", "true"}}),
            "layer_norm · layers 4 · bf16 true");
  EXPECT_EQ(label_of(Labels{{"lr", "1e-3"}, {"corpus", "de 2"}}), "lr 1e-3 · de 2");
}

TEST(Label, HasTheWholeNameOfAnAxisWhoseLastWordIsAnothersToo) {
  EXPECT_EQ(label_of(Labels{{"encoder.layers", "1"}, {"decoder.layers", "80"}, {"model.heads", "8"}}),
            "encoder.layers 1 · decoder.layers 80 · heads 8");
}

TEST(Label, OfARunEndsInItsSeed) {
  harness::Run run{.id = "", .settings = "", .coordinates = {{"a", "1"}}, .seed = 3};
  EXPECT_EQ(label_of(run), "a 1 · seed 3");
  run.coordinates.clear();
  EXPECT_EQ(label_of(run), "seed 3");
}

}  // namespace
}  // namespace tearless::harness::label_test
