#include "harness/store/vfs.h"

#include <sqlite3.h>

#include <cerrno>
#include <filesystem>

#include "base/fault.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

sqlite3_vfs* below() {
  static sqlite3_vfs* found = sqlite3_vfs_find("unix");
  return found;
}

// Lies behind the file struct of the underlying VFS, in the szOsFile bytes that SQLite allocates for each file.
struct Reported {
  const sqlite3_io_methods* real;
  sqlite3_io_methods methods;  // a copy of `real` with our functions for what is reported
  const char* name;            // owned by SQLite for as long as the file is open; "" for a temporary file
  bool new_in_folder;  // created by this open: the first sync also makes its name durable, as in SQLite's own VFS
  bool is_log;         // a journal or write-ahead log
};

Reported& reported(sqlite3_file* file) {
  return *reinterpret_cast<Reported*>(reinterpret_cast<char*>(file) + below()->szOsFile);
}

// The SQLite error code for the errno with which the plan makes a call fail; SQLITE_OK if it does not.
int refusal(fault::Kind kind, const char* what, int otherwise) {
  const int error = fault::point(kind, what);
  return error == 0 ? SQLITE_OK : error == ENOSPC ? SQLITE_FULL : otherwise;
}

int x_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  const Reported& of = reported(file);
  if (const int error = refusal(fault::kWrite, of.name, SQLITE_IOERR_WRITE)) return error;
  if (size < 2) return of.real->xWrite(file, from, size, at);
  // In halves, so that a crash can leave a torn page.
  const int half = size / 2;
  if (const int error = of.real->xWrite(file, from, half, at)) return error;
  if (const int error = refusal(fault::kWrite, of.name, SQLITE_IOERR_WRITE)) return error;
  return of.real->xWrite(file, static_cast<const char*>(from) + half, size - half, at + half);
}

int x_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int error = refusal(fault::kCut, reported(file).name, SQLITE_IOERR_TRUNCATE)) return error;
  return reported(file).real->xTruncate(file, size);
}

int x_sync(sqlite3_file* file, int flags) {
  Reported& of = reported(file);
  if (const int error = refusal(fault::kSync, of.name, SQLITE_IOERR_FSYNC)) return error;
  const int result = of.real->xSync(file, flags);
  if (result == SQLITE_OK && *of.name) {
    fault::synced(fs::path(of.name));
    if (of.new_in_folder && of.is_log) fault::synced(fs::path(of.name).parent_path());
    of.new_in_folder = false;
  }
  return result;
}

int x_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const bool is_new = name && !fs::exists(name);
  if (is_new && (flags & SQLITE_OPEN_CREATE) != 0) {
    if (const int error = refusal(fault::kOpen, name, SQLITE_CANTOPEN)) return error;
  }
  const int result = below()->xOpen(below(), name, file, flags, out_flags);
  if (!file->pMethods) return result;
  Reported& of = reported(file);
  of = {.real = file->pMethods,
        .methods = *file->pMethods,
        .name = name ? name : "",
        .new_in_folder = is_new,
        .is_log = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0};
  of.methods.iVersion = 2;  // supports write-ahead logs but not memory-mapped reading
  of.methods.xWrite = x_write;
  of.methods.xTruncate = x_truncate;
  of.methods.xSync = x_sync;
  file->pMethods = &of.methods;
  return result;
}

int x_delete(sqlite3_vfs*, const char* name, int sync_folder) {
  if (const int error = refusal(fault::kRemove, name, SQLITE_IOERR_DELETE)) return error;
  const int result = below()->xDelete(below(), name, sync_folder);
  if (result == SQLITE_OK && sync_folder) fault::synced(fs::path(name).parent_path());
  return result;
}

}  // namespace

void install_fault_vfs() {
  if (!fault::is_active() || sqlite3_vfs_find("tearless")) return;
  static sqlite3_vfs reporting = *below();
  reporting.pNext = nullptr;
  reporting.zName = "tearless";
  reporting.szOsFile += static_cast<int>(sizeof(Reported));
  reporting.xOpen = x_open;
  reporting.xDelete = x_delete;
  sqlite3_vfs_register(&reporting, /*makeDflt=*/1);
}

}  // namespace tearless::harness
