// Runs a fuzz target without libFuzzer: over its stored inputs, then over mutations of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tearless::fuzz {

using Target = int (*)(const uint8_t* data, size_t size);

/// Every file of tests/fuzz/corpus/NAME, then `mutations` inputs made from them, the same ones every time ($FUZZ_SEED
/// asks for others). An exception that leaves the target fails the test and prints the input.
void replay(const std::string& name, Target target, int mutations = 2000);

}  // namespace tearless::fuzz
