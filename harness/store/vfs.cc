#include "harness/store/vfs.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/fault.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// SQLite allocates szOsFile bytes for each file: this struct, followed by the file struct of the underlying VFS.
struct File {
  sqlite3_file base;
  char* name;          // owned by SQLite for as long as the file is open; null for a temporary file
  bool new_in_folder;  // created by this open: the first sync also makes its name durable, as in SQLite's own VFS
  bool is_log;         // a journal or write-ahead log
};

sqlite3_vfs* below() {
  static sqlite3_vfs* found = sqlite3_vfs_find("unix");
  return found;
}
File* ours(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(ours(file) + 1); }

// The SQLite error code for the errno with which the plan makes a call fail; SQLITE_OK if it does not.
int refusal(fault::Kind kind, const char* what, int otherwise) {
  const int error = fault::point(kind, what);
  return error == 0 ? SQLITE_OK : error == ENOSPC ? SQLITE_FULL : otherwise;
}

const char* name_of(sqlite3_file* file) { return ours(file)->name ? ours(file)->name : ""; }

int x_close(sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); }
int x_read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  return real(file)->pMethods->xRead(real(file), to, size, at);
}
int x_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  if (const int error = refusal(fault::kWrite, name_of(file), SQLITE_IOERR_WRITE)) return error;
  if (size < 2 || !fault::is_active()) return real(file)->pMethods->xWrite(real(file), from, size, at);
  // In halves, so that a crash can leave a torn page.
  const int half = size / 2;
  if (const int error = real(file)->pMethods->xWrite(real(file), from, half, at)) return error;
  if (const int error = refusal(fault::kWrite, name_of(file), SQLITE_IOERR_WRITE)) return error;
  return real(file)->pMethods->xWrite(real(file), static_cast<const char*>(from) + half, size - half, at + half);
}
int x_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int error = refusal(fault::kCut, name_of(file), SQLITE_IOERR_TRUNCATE)) return error;
  return real(file)->pMethods->xTruncate(real(file), size);
}
int x_sync(sqlite3_file* file, int flags) {
  if (const int error = refusal(fault::kSync, name_of(file), SQLITE_IOERR_FSYNC)) return error;
  const int result = real(file)->pMethods->xSync(real(file), flags);
  if (result == SQLITE_OK && ours(file)->name) {
    fault::synced(fs::path(ours(file)->name));
    if (ours(file)->new_in_folder && ours(file)->is_log) fault::synced(fs::path(ours(file)->name).parent_path());
    ours(file)->new_in_folder = false;
  }
  return result;
}
int x_file_size(sqlite3_file* file, sqlite3_int64* size) { return real(file)->pMethods->xFileSize(real(file), size); }
int x_lock(sqlite3_file* file, int level) { return real(file)->pMethods->xLock(real(file), level); }
int x_unlock(sqlite3_file* file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
int x_check_reserved(sqlite3_file* file, int* held) {
  return real(file)->pMethods->xCheckReservedLock(real(file), held);
}
int x_control(sqlite3_file* file, int operation, void* argument) {
  return real(file)->pMethods->xFileControl(real(file), operation, argument);
}
int x_sector_size(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
int x_device(sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }
int x_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** mapped) {
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, mapped);
}
int x_shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
void x_shm_barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
int x_shm_unmap(sqlite3_file* file, int remove) { return real(file)->pMethods->xShmUnmap(real(file), remove); }

// Version 2 supports write-ahead logs but not memory-mapped reading.
constexpr sqlite3_io_methods kMethods = {.iVersion = 2,
                                         .xClose = x_close,
                                         .xRead = x_read,
                                         .xWrite = x_write,
                                         .xTruncate = x_truncate,
                                         .xSync = x_sync,
                                         .xFileSize = x_file_size,
                                         .xLock = x_lock,
                                         .xUnlock = x_unlock,
                                         .xCheckReservedLock = x_check_reserved,
                                         .xFileControl = x_control,
                                         .xSectorSize = x_sector_size,
                                         .xDeviceCharacteristics = x_device,
                                         .xShmMap = x_shm_map,
                                         .xShmLock = x_shm_lock,
                                         .xShmBarrier = x_shm_barrier,
                                         .xShmUnmap = x_shm_unmap,
                                         .xFetch = nullptr,
                                         .xUnfetch = nullptr};

int x_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const bool is_new = name && !fs::exists(name);
  if (is_new && (flags & SQLITE_OPEN_CREATE) != 0) {
    if (const int error = refusal(fault::kOpen, name, SQLITE_CANTOPEN)) return error;
  }
  const int result = below()->xOpen(below(), name, real(file), flags, out_flags);
  if (real(file)->pMethods) file->pMethods = &kMethods;
  ours(file)->name = const_cast<char*>(name);
  ours(file)->new_in_folder = is_new;
  ours(file)->is_log = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
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
  reporting.szOsFile += static_cast<int>(sizeof(File));
  reporting.xOpen = x_open;
  reporting.xDelete = x_delete;
  sqlite3_vfs_register(&reporting, /*makeDflt=*/1);
}

}  // namespace tearless::harness
