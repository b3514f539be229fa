// Who may have written what a worker runs, and what a service records: on a disk that machines share, whoever may write
// a board, a grant or a program has his commands run as the worker's user.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>

namespace tearless::harness {

/// Why the first of `paths` that is there is not to be trusted, one sentence with the command that fixes it; "" if all
/// are. Each must be the user's or root's, and neither anybody nor a group with other members may write it (a folder
/// like /tmp, where nobody can replace the files of others, is as good).
std::string distrust(std::initializer_list<std::filesystem::path> paths);

/// True if `gid` is a group in which the user `uid` is alone. False where the lists of users and groups do not show
/// him: they may be those of a directory service that does not list its users.
bool is_alone_in(unsigned gid, unsigned uid);

}  // namespace tearless::harness
