// What tasks share that make up batches for `bench` (TaskKind::made_up_task): the sizes of batches, and random tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/data/parallel_tokens.h"
#include "engine/ops/random.h"

namespace tearless::engine {

/// The sizes of batches: for each, the rows of each side of its examples.
using MadeUpSizes = std::vector<std::vector<std::vector<int32_t>>>;

/// One batch of examples of 24 rows a side, that together have as many as `tokens`.
MadeUpSizes equal_examples(int64_t tokens, size_t sides);
/// Those in `file`, {"batches": [[example, …], …]}, with as many sides as `otherwise`, which is taken where no file is
/// named. An example is a list of its rows on each side, and where there is one side, a number. Throws UserError for a
/// file that is wrong, naming the fault.
MadeUpSizes sizes_in(const std::filesystem::path& file, MadeUpSizes otherwise);
/// Column `side` of all examples, minus `without` rows each.
std::vector<int64_t> column(const MadeUpSizes& sizes, size_t side, int64_t without);

/// The numbers of the examples of batches that have so many.
std::vector<std::vector<int32_t>> numbered(const std::vector<int64_t>& counts);
/// The numbers of the examples of these batches.
std::vector<std::vector<int32_t>> numbered(const MadeUpSizes& sizes);

/// Lines of so many words each, which are as likely as one another, of a vocabulary with PAD, BOS, EOS and UNK.
TokenLines random_lines(const std::vector<int64_t>& words, bool with_eos, int64_t vocab_size,
                        const RandomStream& stream);

}  // namespace tearless::engine
