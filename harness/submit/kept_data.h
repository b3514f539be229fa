// The input files of a submission's runs, copied to the workspace: runs that wait are trained on the bytes that they
// were submitted with, whatever happens to the files meanwhile.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/schedule/program.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// Receives a sentence for the user.
using Notice = std::function<void(const std::string&)>;

/// Where the copies of the runs' input files belong: data/<hash of the bytes>/<name of the file>. Makes none.
class KeptData {
 public:
  /// `program` is for messages.
  KeptData(const Workspace& workspace, std::filesystem::path program);

  /// The text `local` of a run's local.toml, with the paths of the copies, relative to the run's folder, in place of
  /// those of `files`. UserError if the program's answer is not as docs/run_directory.md describes.
  const std::string& local_text(const InputFiles& files, const std::string& local);

  /// The copies that local_text() has named, each once.
  std::vector<KeptFile> files() const;

 private:
  std::string redirected(const InputFiles& files, const std::string& local);
  std::string redirected_path(const std::string& key, const std::string& path,
                              const std::map<std::string, std::string>& checksums);

  Workspace workspace_;
  std::filesystem::path program_;
  std::map<InputFiles, std::map<std::string, std::string>> known_;  // files → local → local_text()
  std::map<std::string, KeptFile> files_;                           // by the path of the copy
};

/// The text of a run's local.toml for a folder elsewhere: the paths of copies become absolute.
std::string local_text_for_elsewhere(const Workspace& workspace, const std::string& local);

/// Makes those of the copies that are not there, durably, sharing blocks with the originals where the file system can.
/// Copies that take a while are announced to `notice`. UserError if an original is missing, or no longer has its
/// checksum; MachineError if the disk has too little room. A copy is complete or absent. REQUIRES:
/// lock_for_submission() is held.
void make_copies(const Workspace& workspace, const std::vector<KeptFile>& files, const Notice& notice);

}  // namespace tearless::harness
