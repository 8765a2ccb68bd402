#pragma once

#include <string>
#include <vector>

namespace yoke::cli {

/// The words as a person would type them in a shell: quoted where they must be.
std::string as_typed(const std::vector<std::string>& words);

/// The command that continues a run: the one that was typed, without what would set the folder
/// aside.
std::string command_to_resume(const std::vector<std::string>& words);

/// The name of this host, for messages.
std::string host_name();

}  // namespace yoke::cli
