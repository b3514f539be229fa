// A linear map of several embeddings side by side, as the first layer of a parser reads its features
// (docs/spec/tasks.md §4.3).
#pragma once

#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// y[n] = W [table[t₁] ‖ … ‖ table[t_F]] + b for the tokens t = tokens[n · F …] of each of N inputs: table [V, E],
/// weight [out, F · E], bias [out] or empty → [N, out]. `tokens` has the N · F tokens, all of position 0, and must
/// outlive the tape. The result is of the given type.
///
/// On the processor each distinct pair of a place f and a token there is multiplied once, W_f table[t], and y[n] is a
/// sum of F of these (Chen and Manning 2014, §3.3, compute them in advance for frequent tokens). A batch of
/// 10,000 inputs of English text has about a tenth as many pairs as places.
Value linear_of_embeddings(Tape& tape, const Value& table, const PackedRows& tokens, int64_t features,
                           const Value& weight, const Value& bias, at::ScalarType type);

}  // namespace tearless::engine
