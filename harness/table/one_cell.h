// One cell of tables, by words: "model.norm.kind=layer_norm", "task=RT", "test.accuracy", "{mean:.2f}".
#pragma once

#include <string>
#include <vector>

#include "harness/table/table.h"

namespace tearless::harness {

struct OneCell {
  std::string text = {};
  bool has_value = true;  // false: the text is "div.", "left out", "–" …
};

/// The text of the one cell that the words mean, with the escapes of a format for people. A word is
/// - AXIS=LABEL, or the name of a score: as the grid has them, or in print;
/// - what is shown of the cell: statistics as the key `show` has them ({mean:.2f}), {published}, or {difference}, what
///   was measured minus what was published. Without one it is what the table shows that was measured.
/// UserError, after "LOCATION: ", for words that mean no cell or several, with the nearest names or those to add.
OneCell one_cell(const std::vector<Table>& tables, const std::vector<std::string>& words, TableFormat format,
                 const std::string& location);

}  // namespace tearless::harness
