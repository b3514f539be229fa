// The runs that wait for their input files, which are missing or are not those that they were planned with.
//
// The training program decides that, because it reads the files anyway, and may have what it needs in a cache of its
// own: it ends with kExitData. Then
//   1. the scheduler finds out which file it is (fault_of()) and moves the run to waiting_data, with the queued runs of
//      the same files: each would need an attempt to learn the same;
//   2. this class looks at the files now and then, at their stamps and not at their bytes;
//   3. once the stamps differ from the refused ones and two looks in a row find them equal, the scheduler queues the
//      runs again.
// So unchanged files are not read again, however long the runs wait. What is known here ends with the process: the next
// service tries these runs once, and so does a submission.
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

  /// Looks at the files. Returns the runs whose files have changed, and forgets these runs.
  std::vector<std::string> changed();

 private:
  struct Watched {
    FileStamps refused, seen;  // seen: when changed() looked last
    std::vector<std::string> runs;
  };
  std::map<InputFiles, Watched> watched_;
};

}  // namespace tearless::harness
