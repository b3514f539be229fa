// The numbers that a paper published, as a table shows them beside measured ones.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/grid/names.h"

namespace tearless::harness {

/// How near a measured mean must be to a published number, which `tearless check-table` says.
struct Tolerance {
  // Their distance, in the unit that the table shows; of a prediction the half-width of its interval.
  double at_most = 0;
  // The number is the mean of so many runs, which ours predict; nullopt: no prediction.
  std::optional<size_t> runs = {};
};

struct PublishedNumber {
  nlohmann::json value = {};  // a number, a text that is none ("fail"), or null: none
  std::string text = {};  // as the source prints it, marks included: "20.91‡*"; "": the number, with the digits of
                          // the others
  Name source = {};       // "": that of the others
  std::optional<Tolerance> tolerance = {};  // nullopt: it is not compared
};

/// The numbers of one score, or words in their place.
struct Published {
  Name source;                                       // "TwT, Table 3"
  std::string score;                                 // "": the first of the table
  std::map<std::string, Tolerance> tolerances;       // score or pattern → PublishedNumber::tolerance
  std::vector<std::vector<PublishedNumber>> values;  // [row][column] of the grid
};

}  // namespace tearless::harness
