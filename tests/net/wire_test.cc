// The bytes on the wire: what is encoded is decoded, and what is damaged is not. The same laws as
// the fuzz target, on mutations that every run makes in the same way.

#include "yoke/net/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "yoke/base/error.h"
#include "yoke/net/store_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace yoke::net {
namespace {

/// tests/net/wire_fuzz.cc, on one input.
void check_decoders(std::span<const std::byte> bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

FrameHeader a_header() {
  FrameHeader header;
  header.generation = 3;
  header.tag = {.sequence = 412,
                .operation = 0,
                .reduce = 1,
                .dtype = DType::kBFloat16,
                .topology = 2,
                .root = -1,
                .count = 25'000};
  header.message_bytes = 5'000'000;
  header.offset = 2 << 20;
  header.payload_bytes = 1 << 20;
  header.payload_crc = 0x12345678;
  return header;
}

template <typename Bytes>
std::vector<std::byte> vector_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::vector<std::vector<std::byte>> samples() {
  Failure timeout{.kind = Failure::Kind::kTimeout,
                  .missing = {3, 1, 4},
                  .operation = "all_reduce",
                  .message = "nothing came"};
  Greeting greeting;
  greeting.kind = GreetingKind::kAnswer;
  greeting.verdict = Verdict::kWrongWorld;
  greeting.rank = 7;
  greeting.nonce.fill(std::byte{9});
  std::vector<std::int32_t> ranks{5, 6, -1};
  auto request = encode(StoreRequest{
      .operation = StoreOperation::kAdd, .number = -5, .key = "key", .value = "value"});
  auto response = encode(StoreResponse{.found = true, .number = 1, .value = "value"});
  auto without_length = [](std::vector<std::byte> message) {
    message.erase(message.begin(), message.begin() + kStoreLengthBytes);
    return message;
  };
  return {vector_of(encode(a_header())),
          encode(timeout),
          vector_of(encode(greeting)),
          encode(ranks),
          request,
          without_length(request),
          without_length(response),
          control_frame(FrameKind::kPing, 1, {.sequence = 2}, {})};
}

TEST(Wire, AFrameHeaderComesBackAsItWas) {
  std::string why;
  EXPECT_EQ(decode_frame_header(encode(a_header()), why), a_header()) << why;
}

TEST(Wire, TheBytesOfAHeaderAreFixed) {
  // Little-endian, whatever the machine: two builds must understand each other.
  auto bytes = encode(a_header());
  EXPECT_EQ(bytes[0], std::byte{'Y'});
  EXPECT_EQ(bytes[3], std::byte{'E'});
  EXPECT_EQ(bytes[8], std::byte{3});            // generation
  EXPECT_EQ(bytes[16], std::byte{412 & 0xff});  // sequence
  EXPECT_EQ(bytes[17], std::byte{412 >> 8});
  EXPECT_EQ(bytes[60], std::byte{0x78});  // checksum of the payload
  EXPECT_EQ(bytes[63], std::byte{0x12});
}

TEST(Wire, AFailureComesBackAsItWas) {
  Failure failure{.kind = Failure::Kind::kTimeout,
                  .rank = 2,
                  .generation = 9,
                  .missing = {1, 2, 3},
                  .operation = "barrier",
                  .message = "why"};
  auto back = decode_failure(encode(failure));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, failure.kind);
  EXPECT_EQ(back->rank, failure.rank);
  EXPECT_EQ(back->generation, failure.generation);
  EXPECT_EQ(back->missing, failure.missing);
  EXPECT_EQ(back->operation, failure.operation);
  EXPECT_EQ(back->message, failure.message);
}

TEST(Wire, AnEndlessTextStillFitsAControlFrame) {
  Failure failure{.missing = std::vector<int>(1'000'000, 1),
                  .operation = std::string(1'000'000, 'o'),
                  .message = std::string(1'000'000, 'm')};
  EXPECT_LE(encode(failure).size(), kControlPayloadBytes);
  EXPECT_TRUE(decode_failure(encode(failure)));
}

TEST(Wire, FramesOfAMessage) {
  EXPECT_EQ(frames_of(0), 1u);
  EXPECT_EQ(frames_of(1), 1u);
  EXPECT_EQ(frames_of(kFramePayloadBytes), 1u);
  EXPECT_EQ(frames_of(kFramePayloadBytes + 1), 2u);
}

TEST(Wire, TheTagIsDescribedInWords) {
  auto tag = a_header().tag;
  tag.dtype = DType::kFloat32;
  EXPECT_EQ(describe(tag), "all_reduce #412 of 25000 float32 mean (ring)");
  EXPECT_EQ(describe({.sequence = 3, .operation = 8}), "barrier #3");
  EXPECT_EQ(describe({.sequence = 4, .operation = 4, .root = 2, .count = 10}),
            "broadcast #4 of 10 uint8, root 2");
  // A damaged or newer peer's numbers are printed, not trusted.
  EXPECT_THAT(describe({.operation = 200, .dtype = DType(99), .count = 1}),
              testing::HasSubstr("unknown 200"));
}

TEST(Wire, MutationsOfEverySampleKeepTheLaws) {
  std::mt19937 random(1);
  for (const auto& sample : samples()) {
    check_decoders(sample);
    for (std::size_t length = 0; length < sample.size(); ++length) {
      check_decoders(std::span(sample).first(length));
    }
    for (int round = 0; round < 3000; ++round) {
      auto mutated = sample;
      for (auto changes = 1 + random() % 4; changes > 0; --changes) {
        auto at = random() % mutated.size();
        switch (random() % 4) {
          case 0:
            mutated[at] ^= std::byte{1} << (random() % 8);
            break;
          case 1:
            mutated[at] = static_cast<std::byte>(random());
            break;
          case 2:
            mutated.insert(mutated.begin() + static_cast<std::ptrdiff_t>(at),
                           static_cast<std::byte>(random()));
            break;
          default:
            mutated.erase(mutated.begin() + static_cast<std::ptrdiff_t>(at));
            break;
        }
        if (mutated.empty()) {
          mutated.resize(1);
        }
      }
      check_decoders(mutated);
    }
  }
}

TEST(Wire, NonsenseKeepsTheLaws) {
  std::mt19937 random(2);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 200);
    for (auto& byte : bytes) {
      byte = static_cast<std::byte>(random());
    }
    check_decoders(bytes);
  }
}

}  // namespace
}  // namespace yoke::net
