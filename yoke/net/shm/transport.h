#pragma once

#include <memory>

#include "yoke/net/shm/group.h"
#include "yoke/net/transport.h"

namespace yoke::net {

/// Messages through a ring of 64 KiB for each ordered pair of ranks (net/shm/mailbox.h), and a
/// doorbell for each rank. Every byte is copied twice. A frame is 32 bytes of header (tag, size)
/// and the payload; no checksum, since nothing but the processes themselves lies between the two
/// ends.
///
/// Collective over the group. What its ranks share beyond that - causes of failure, liveness,
/// deadlines - is the group's: abort() ends everything that waits in the same group.
std::unique_ptr<Transport> make_shm_transport(std::shared_ptr<ShmGroup> group, SharedMemory& memory,
                                              Deadline deadline);

/// Bytes of header that each message adds on this transport.
inline constexpr std::size_t kShmFrameBytes = 32;

}  // namespace yoke::net
