#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/net/failure.h"
#include "yoke/net/transport.h"

/// The bytes that travel between two processes, as pure functions: little-endian, fixed sizes,
/// every length checked before it is used. Nothing here reads a socket, so all of it can be fuzzed.
namespace yoke::net {

/// What a frame is for. The values travel: never renumber.
enum class FrameKind : std::uint8_t {
  kData = 1,
  kAbort = 2,    ///< the sender has failed; the payload is a Failure
  kGoodbye = 3,  ///< the sender leaves and owes nothing more
  kPing = 4,     ///< "are you in exchange()?"
  kPong = 5,     ///< "yes, in the call of the tag"; the payload is the ranks that it waits for
};

inline constexpr std::size_t kFrameHeaderBytes = 68;
/// A message longer than this travels as several frames, so that its checksum is computed while
/// earlier parts are on the wire.
inline constexpr std::size_t kFramePayloadBytes = std::size_t{1} << 20;
/// Payloads of frames other than data are small.
inline constexpr std::size_t kControlPayloadBytes = std::size_t{1} << 18;

struct FrameHeader {
  FrameKind kind = FrameKind::kData;
  std::uint64_t generation = 0;
  CallTag tag;
  std::uint64_t message_bytes = 0;  ///< of the whole message
  std::uint64_t offset = 0;         ///< of this frame's payload in the message
  std::uint32_t payload_bytes = 0;
  std::uint32_t payload_crc = 0;
  bool operator==(const FrameHeader&) const = default;
};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

/// Frames that a message of `bytes` travels in: at least one.
std::uint64_t frames_of(std::uint64_t bytes);

FrameHeaderBytes encode(const FrameHeader& header);
/// Nothing if magic, version, checksum, kind or sizes are wrong; `why` says which.
std::optional<FrameHeader> decode_frame_header(std::span<const std::byte> bytes, std::string& why);

/// A rank that fails tells the others why, so that all throw the same. Texts are cut so that the
/// payload fits a control frame.
std::vector<std::byte> encode(const Failure& failure);
std::optional<Failure> decode_failure(std::span<const std::byte> bytes);

std::vector<std::byte> encode(std::span<const std::int32_t> ranks);
std::optional<std::vector<std::int32_t>> decode_ranks(std::span<const std::byte> bytes);

/// A whole frame of a kind other than data.
std::vector<std::byte> control_frame(FrameKind kind, std::uint64_t generation, const CallTag& tag,
                                     std::span<const std::byte> payload);

/// The four messages of a handshake (net/handshake.h) have one form.
enum class GreetingKind : std::uint8_t { kHello = 1, kAnswer = 2, kProof = 3, kWelcome = 4 };

enum class Verdict : std::uint8_t {
  kAccepted = 0,
  kElsewhere = 1,         ///< another job or purpose lives here
  kLowerGeneration = 2,   ///< the caller's generation is over
  kHigherGeneration = 3,  ///< the caller's generation has not begun here
  kWrongToken = 4,
  kWrongWorld = 5,  ///< the caller's size or rank does not fit this world
};

inline constexpr std::size_t kGreetingBytes = 120;

struct Greeting {
  GreetingKind kind = GreetingKind::kHello;
  Verdict verdict = Verdict::kAccepted;
  std::uint8_t channel = 0;
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::array<std::byte, 32> nonce{};
  std::array<std::byte, 32> scope{};  ///< keyed digest of job and purpose
  std::array<std::byte, 32> proof{};
  bool operator==(const Greeting&) const = default;
};

using GreetingBytes = std::array<std::byte, kGreetingBytes>;

GreetingBytes encode(const Greeting& greeting);
std::optional<Greeting> decode_greeting(std::span<const std::byte> bytes);

}  // namespace yoke::net
