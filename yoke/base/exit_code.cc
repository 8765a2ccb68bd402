#include "yoke/base/exit_code.h"

#include "yoke/base/error.h"

namespace yoke {
namespace {

template <typename Kind>
bool is(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

}  // namespace

int exit_code_of(const std::exception& error) {
  if (is<UsageError>(error)) return kExitUsage;
  if (is<ConfigError>(error)) return kExitConfig;
  if (is<DataError>(error)) return kExitData;
  if (is<IoError>(error) || is<CheckpointError>(error)) return kExitIo;
  if (is<CommunicationError>(error)) return kExitPeerLost;
  if (is<InternalError>(error)) return kExitInternal;
  return kExitFailed;
}

}  // namespace yoke
