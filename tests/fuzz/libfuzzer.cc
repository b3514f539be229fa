// libFuzzer's entry to the target that tools/fuzz.sh names.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tearless::fuzz::TEARLESS_FUZZ_TARGET(data, size);
}
