#include "yoke/base/exit_code.h"

#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "yoke/base/error.h"

namespace yoke {
namespace {

template <typename Kind>
bool is(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

/// libtorch has no exception of its own for it.
bool is_out_of_memory(const std::exception& error) {
  return is<std::bad_alloc>(error) ||
         std::string_view(error.what()).find("DefaultCPUAllocator: ") != std::string_view::npos;
}

/// Threads, descriptors, or memory, as the standard library says it.
bool is_shortage(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system == nullptr) return false;
  return system->code() == std::errc::resource_unavailable_try_again ||
         system->code() == std::errc::not_enough_memory ||
         system->code() == std::errc::too_many_files_open ||
         system->code() == std::errc::too_many_files_open_in_system;
}

}  // namespace

int exit_code_of(const std::exception& error) {
  if (is<UsageError>(error)) return kExitUsage;
  if (is<ConfigError>(error)) return kExitConfig;
  if (is<DataError>(error)) return kExitData;
  if (is<IoError>(error) || is<CheckpointError>(error)) return kExitIo;
  if (is<std::filesystem::filesystem_error>(error)) return kExitIo;
  if (is<CommunicationError>(error)) return kExitPeerLost;
  if (is<ResourceError>(error) || is_out_of_memory(error) || is_shortage(error))
    return kExitEnvironment;
  if (is<InternalError>(error)) return kExitInternal;
  return kExitFailed;
}

std::string message_of(const std::exception& error) {
  if (!is_out_of_memory(error)) return error.what();
  return std::string(kNotEnoughMemory);
}

}  // namespace yoke
