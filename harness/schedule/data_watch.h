// The runs that wait for their input files, which are missing or are not those that they were planned with.
//
// Whether they are is the training program's to say, because it reads them anyway, and may have what it needs in a
// cache of its own: it ends with kExitData. Then
//   1. the scheduler finds out which file it is (fault_of()) and moves the run to waiting_data, and with it all queued
//      runs of the same files, of which none needs an attempt to learn the same;
//   2. this class looks at the files now and then, at their stamps and not at their bytes;
//   3. once they are other than those that the program refused, and nobody writes to them any more, the scheduler
//      queues the runs again.
// So the files are read once for each change of them, however long they are missing. What is known here ends with the
// process: the next service tries these runs once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/runs/input_files.h"

namespace tearless::harness {

class DataWatch {
 public:
  /// `refused`: the stamps of `files` before the attempt that the program ended. `runs`: their ids.
  void add(const InputFiles& files, FileStamps refused, const std::vector<std::string>& runs);

  /// Looks at the files. Returns the runs of those that have changed since, and forgets these runs.
  std::vector<std::string> changed();

 private:
  struct Watched {
    FileStamps refused, seen;  // seen: when changed() looked last
    std::vector<std::string> runs;
  };
  std::map<InputFiles, Watched> watched_;
};

}  // namespace tearless::harness
