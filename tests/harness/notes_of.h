// The texts of the notes below a table or a figure.
#pragma once

#include <string>
#include <vector>

#include "harness/grid/names.h"

namespace tearless::harness {

template <class View>
std::vector<std::string> notes_of(const View& view) {
  std::vector<std::string> texts;
  for (const Name& note : view.notes) texts.push_back(note.text);
  return texts;
}

}  // namespace tearless::harness
