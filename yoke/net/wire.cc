#include "yoke/net/wire.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/net/bytes.h"

namespace yoke::net {
namespace {

constexpr std::uint32_t kFrameMagic = 0x454b4f59;     // "YOKE"
constexpr std::uint32_t kGreetingMagic = 0x484b4f59;  // "YOKH"
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kCheckedHeaderBytes = kFrameHeaderBytes - sizeof(std::uint32_t);
constexpr std::size_t kLongestText = 16 << 10;

/// Fills a fixed buffer front to back; the sizes are known when compiling, the end is checked
/// below.
class FixedWriter {
 public:
  explicit FixedWriter(std::span<std::byte> out) : out_(out) {}
  template <std::integral Integer>
  void put(Integer value) {
    auto bits = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<Integer>>(value));
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
      out_[at_ + i] = static_cast<std::byte>(bits >> (8 * i) & 0xff);
    }
    at_ += sizeof(Integer);
  }
  void put(std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), out_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ += bytes.size();
  }
  std::size_t at() const { return at_; }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

void read_into(ByteReader& reader, std::array<std::byte, 32>& out) {
  auto bytes = reader.take(out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
}

}  // namespace

std::uint64_t frames_of(std::uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes - 1) / kFramePayloadBytes + 1;
}

FrameHeaderBytes encode(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  FixedWriter out(bytes);
  out.put(kFrameMagic);
  out.put(kVersion);
  out.put(static_cast<std::uint8_t>(header.kind));
  out.put(header.tag.operation);
  out.put(header.generation);
  out.put(header.tag.sequence);
  out.put(header.tag.count);
  out.put(header.message_bytes);
  out.put(header.offset);
  out.put(header.payload_bytes);
  out.put(header.tag.root);
  out.put(header.tag.reduce);
  out.put(static_cast<std::uint8_t>(header.tag.dtype));
  out.put(header.tag.topology);
  out.put(std::uint8_t{0});
  out.put(header.payload_crc);
  out.put(crc32c(std::span(bytes).first(kCheckedHeaderBytes)));
  YOKE_ENSURE_EQ(out.at(), bytes.size(), "the frame header has a fixed size.");
  return bytes;
}

std::optional<FrameHeader> decode_frame_header(std::span<const std::byte> bytes, std::string& why) {
  if (bytes.size() != kFrameHeaderBytes) {
    why = cat("a frame header has ", kFrameHeaderBytes, " bytes, not ", bytes.size());
    return std::nullopt;
  }
  ByteReader in(bytes);
  if (auto magic = in.get<std::uint32_t>(); magic != kFrameMagic) {
    why = cat("no frame starts with the word ", magic);
    return std::nullopt;
  }
  if (auto version = in.get<std::uint16_t>(); version != kVersion) {
    why = cat("frame version ", version, ", this build speaks ", kVersion);
    return std::nullopt;
  }
  FrameHeader header;
  auto kind = in.get<std::uint8_t>();
  header.kind = static_cast<FrameKind>(kind);
  header.tag.operation = in.get<std::uint8_t>();
  header.generation = in.get<std::uint64_t>();
  header.tag.sequence = in.get<std::uint64_t>();
  header.tag.count = in.get<std::uint64_t>();
  header.message_bytes = in.get<std::uint64_t>();
  header.offset = in.get<std::uint64_t>();
  header.payload_bytes = in.get<std::uint32_t>();
  header.tag.root = in.get<std::int32_t>();
  header.tag.reduce = in.get<std::uint8_t>();
  header.tag.dtype = static_cast<DType>(in.get<std::uint8_t>());
  header.tag.topology = in.get<std::uint8_t>();
  auto zero = in.get<std::uint8_t>();
  header.payload_crc = in.get<std::uint32_t>();
  auto crc = in.get<std::uint32_t>();
  if (crc != crc32c(bytes.first(kCheckedHeaderBytes))) {
    why = "the checksum of a frame header does not fit it";
    return std::nullopt;
  }
  bool data = header.kind == FrameKind::kData;
  if (kind < static_cast<std::uint8_t>(FrameKind::kData) ||
      kind > static_cast<std::uint8_t>(FrameKind::kPong) || zero != 0) {
    why = cat("no frame is of kind ", static_cast<int>(kind));
    return std::nullopt;
  }
  if (header.payload_bytes > (data ? kFramePayloadBytes : kControlPayloadBytes) ||
      header.offset > header.message_bytes ||
      header.payload_bytes > header.message_bytes - header.offset) {
    why = cat("a frame of ", header.payload_bytes, " bytes at ", header.offset,
              " cannot be part of a message of ", header.message_bytes);
    return std::nullopt;
  }
  return header;
}

std::vector<std::byte> encode(const Failure& failure) {
  ByteWriter out;
  out.put(static_cast<std::uint8_t>(failure.kind));
  out.put(static_cast<std::int32_t>(failure.rank));
  out.put(failure.generation);
  out.put_text(std::string_view(failure.operation).substr(0, kLongestText));
  out.put_text(std::string_view(failure.message).substr(0, kLongestText));
  auto room = (kControlPayloadBytes - 2 * kLongestText - 64) / sizeof(std::int32_t);
  std::vector<std::int32_t> missing(failure.missing.begin(), failure.missing.end());
  missing.resize(std::min(missing.size(), room));
  out.put(encode(missing));
  return std::move(out.bytes());
}

std::optional<Failure> decode_failure(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Failure failure;
  auto kind = in.get<std::uint8_t>();
  failure.kind = static_cast<Failure::Kind>(kind);
  failure.rank = in.get<std::int32_t>();
  failure.generation = in.get<std::uint64_t>();
  failure.operation = in.get_text();
  failure.message = in.get_text();
  auto missing = decode_ranks(in.rest());
  bool known = kind >= static_cast<std::uint8_t>(Failure::Kind::kAborted) &&
               kind <= static_cast<std::uint8_t>(Failure::Kind::kOther);
  if (!in.good() || !missing || !known) {
    return std::nullopt;
  }
  failure.missing.assign(missing->begin(), missing->end());
  return failure;
}

std::vector<std::byte> encode(std::span<const std::int32_t> ranks) {
  ByteWriter out;
  out.put(static_cast<std::uint32_t>(ranks.size()));
  for (auto rank : ranks) {
    out.put(rank);
  }
  return std::move(out.bytes());
}

std::optional<std::vector<std::int32_t>> decode_ranks(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  auto count = in.get<std::uint32_t>();
  if (!in.good() || in.rest().size() != std::size_t{count} * sizeof(std::int32_t)) {
    return std::nullopt;
  }
  std::vector<std::int32_t> ranks(count);
  for (auto& rank : ranks) {
    rank = in.get<std::int32_t>();
  }
  return ranks;
}

std::vector<std::byte> control_frame(FrameKind kind, std::uint64_t generation, const CallTag& tag,
                                     std::span<const std::byte> payload) {
  YOKE_ENSURE(payload.size() <= kControlPayloadBytes, payload.size(), " bytes.");
  FrameHeader header;
  header.kind = kind;
  header.generation = generation;
  header.tag = tag;
  header.message_bytes = payload.size();
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_crc = crc32c(payload);
  auto encoded = encode(header);
  std::vector<std::byte> frame(encoded.begin(), encoded.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

GreetingBytes encode(const Greeting& greeting) {
  GreetingBytes bytes{};
  FixedWriter out(bytes);
  out.put(kGreetingMagic);
  out.put(kVersion);
  out.put(static_cast<std::uint8_t>(static_cast<int>(greeting.kind) << 4 | greeting.channel));
  out.put(static_cast<std::uint8_t>(greeting.verdict));
  out.put(greeting.generation);
  out.put(greeting.rank);
  out.put(greeting.size);
  out.put(greeting.nonce);
  out.put(greeting.scope);
  out.put(greeting.proof);
  YOKE_ENSURE_EQ(out.at(), bytes.size(), "a greeting has a fixed size.");
  return bytes;
}

std::optional<Greeting> decode_greeting(std::span<const std::byte> bytes) {
  if (bytes.size() != kGreetingBytes) {
    return std::nullopt;
  }
  ByteReader in(bytes);
  if (in.get<std::uint32_t>() != kGreetingMagic || in.get<std::uint16_t>() != kVersion) {
    return std::nullopt;
  }
  Greeting greeting;
  auto kind_and_channel = in.get<std::uint8_t>();
  int kind = kind_and_channel >> 4;
  greeting.kind = static_cast<GreetingKind>(kind);
  greeting.channel = kind_and_channel & 0xf;
  auto verdict = in.get<std::uint8_t>();
  greeting.verdict = static_cast<Verdict>(verdict);
  greeting.generation = in.get<std::uint64_t>();
  greeting.rank = in.get<std::int32_t>();
  greeting.size = in.get<std::int32_t>();
  read_into(in, greeting.nonce);
  read_into(in, greeting.scope);
  read_into(in, greeting.proof);
  if (kind < static_cast<int>(GreetingKind::kHello) ||
      kind > static_cast<int>(GreetingKind::kWelcome) ||
      verdict > static_cast<std::uint8_t>(Verdict::kWrongWorld)) {
    return std::nullopt;
  }
  return greeting;
}

}  // namespace yoke::net
