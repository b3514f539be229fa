#include "harness/slurm/squeue.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {

int fuzz_slurm(const uint8_t* data, size_t size) {
  const harness::Said said{.code = 0, .output = std::string(text_of(data, size))};
  if (const auto jobs = harness::jobs_in(said)) {
    for (const harness::SlurmJob& job : *jobs) {
      require(!job.array.empty() && job.seconds >= 0, "a job without an id, or with a time below zero");
      require(job.state() != harness::JobState::kEnded || !harness::meaning_of(job.word).phrase.empty(),
              "a job that has ended, and nothing says how");
      job.id();
    }
  }
  return 0;
}

}  // namespace tearless::fuzz
