// The numbers that a paper published, as a table shows them beside measured ones.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tearless::harness {

struct PublishedNumber {
  nlohmann::json value = {};  // a number, a text that is none ("fail"), or null: none
  std::string text = {};    // as the source prints it, marks included: "20.91‡*"; "": the number, with the digits of
                            // the others
  std::string source = {};  // "": that of the others
};

/// The numbers of one score, or words in their place.
struct Published {
  std::string source;                                // "TwT, Table 3"
  std::string score;                                 // "": the first of the table
  std::vector<std::vector<PublishedNumber>> values;  // [row][column] of the grid
};

}  // namespace tearless::harness
