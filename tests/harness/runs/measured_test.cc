// What attempts have measured, as numbers of their run: sums over all attempts, and ratios of sums.
#include "harness/runs/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tearless::harness::measured_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

AttemptRecord attempt(json measured, const std::string& processor = "a processor") {
  AttemptRecord record;
  record.device = "cpu";
  record.processor = processor;
  record.arithmetic = "OpenBLAS 0.3";
  record.measured = std::move(measured);
  return record;
}

// Stopped once, killed once, then finished.
std::vector<AttemptRecord> three_attempts() {
  return {attempt({{"seconds", 10},
                   {"training_seconds", 6},
                   {"updates", 30},
                   {"tokens_per_second", 100.0},
                   {"peak_memory_bytes", 4000},
                   {"threads", 2}}),
          attempt(nullptr),
          attempt({{"seconds", 8.5},
                   {"training_seconds", 2},
                   {"updates", 10},
                   {"tokens_per_second", 300.0},
                   {"decoding_seconds", 1.5},
                   {"decoded_sentences", 12},
                   {"peak_memory_bytes", 3000},
                   {"threads", 2}})};
}

TEST(Measured, IsSummedOverTheAttemptsOfARun) {
  EXPECT_THAT(
      measured_numbers(three_attempts()),
      ElementsAre(Pair("measured.decoding_seconds", 1.5), Pair("measured.peak_memory_bytes", 4000),
                  Pair("measured.seconds", 18.5), Pair("measured.seconds_per_update", 8. / 40),
                  Pair("measured.sentences_per_second", 12 / 1.5),
                  Pair("measured.tokens_per_second", (100. * 6 + 300. * 2) / 8), Pair("measured.training_seconds", 8)));
  EXPECT_EQ(measured_numbers(three_attempts()).size(), measured_names().size()) << "a name without a test";
}

TEST(Measured, OfAProgramThatDoesNotSayTheSecondsOfTrainingIsOfAllSeconds) {
  EXPECT_THAT(measured_numbers({attempt({{"seconds", 6}, {"updates", 12}, {"tokens_per_second", 5}})}),
              ElementsAre(Pair("measured.seconds", 6), Pair("measured.seconds_per_update", 0.5),
                          Pair("measured.tokens_per_second", 5)));
}

TEST(Measured, HasOnlyWhatIsKnownAndANumber) {
  EXPECT_THAT(measured_numbers({}), IsEmpty());
  EXPECT_THAT(measured_numbers({attempt(nullptr), attempt(json::array({1})), attempt("seconds")}), IsEmpty());
  EXPECT_THAT(measured_numbers({attempt({{"seconds", "6"}, {"updates", nullptr}, {"peak_memory_bytes", -1}})}),
              IsEmpty());
  EXPECT_THAT(measured_numbers({attempt({{"seconds", std::numeric_limits<double>::infinity()}})}), IsEmpty());
  EXPECT_THAT(measured_numbers({attempt({{"seconds", 3}, {"updates", 0}})}), ElementsAre(Pair("measured.seconds", 3)))
      << "nothing is divided by no updates";
}

TEST(Measured, SaysOnWhichMachinesAndThreads) {
  EXPECT_THAT(measured_on(three_attempts()), ElementsAre("cpu, a processor, OpenBLAS 0.3, 2 threads"));
  EXPECT_THAT(measured_on({attempt({{"seconds", 1}, {"threads", 1}}), attempt({{"seconds", 1}, {"threads", 2}})}),
              ElementsAre("cpu, a processor, OpenBLAS 0.3, 1 thread", "cpu, a processor, OpenBLAS 0.3, 2 threads"));
  EXPECT_THAT(measured_on({attempt({{"seconds", 1}}), attempt({{"seconds", 1}}, "another")}),
              ElementsAre("cpu, a processor, OpenBLAS 0.3", "cpu, another, OpenBLAS 0.3"));
  EXPECT_THAT(measured_on({attempt(nullptr), attempt(json::object())}), IsEmpty()) << "they have measured nothing";
}

TEST(Measured, IsMeantOnlyByNamesAndPatternsThatSaySo) {
  for (const char* name : {"measured.seconds", "wide.measured.seconds", "measured.*", "*.measured.seconds"}) {
    EXPECT_TRUE(is_measured(name)) << name;
  }
  for (const char* name : {"test.bleu", "unmeasured.seconds", "measured", "*", "seconds_per_update"}) {
    EXPECT_FALSE(is_measured(name)) << name;
  }
  EXPECT_TRUE(matches_score("measured.*", "measured.seconds"));
  EXPECT_TRUE(matches_score("*.measured.*", "wide.measured.seconds"));
  EXPECT_TRUE(matches_score("*", "test.bleu"));
  EXPECT_FALSE(matches_score("*", "measured.seconds"));
  EXPECT_FALSE(matches_score("wide.*", "wide.measured.seconds"));
  EXPECT_FALSE(matches_score("measured.s*", "measured.training_seconds"));
}

}  // namespace
}  // namespace tearless::harness::measured_test
