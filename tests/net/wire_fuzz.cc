// Every decoder of net on any bytes. What one accepts must survive encoding and decoding again, and
// damage to any one bit of an accepted frame header must be noticed; InternalError when that law is
// broken.
//
//   cmake -B build-fuzz -DCMAKE_CXX_COMPILER=clang++ -DYOKE_FUZZ=ON -DYOKE_TORCH=OFF
//   cmake --build build-fuzz --target yoke_wire_fuzz
//   build-fuzz/yoke_wire_fuzz -max_len=512

#include <algorithm>
#include <span>
#include <string>

#include "yoke/base/error.h"
#include "yoke/net/store_protocol.h"
#include "yoke/net/wire.h"

namespace yoke::net {
namespace {

void check_frame_header(std::span<const std::byte> bytes) {
  std::string why;
  auto header = decode_frame_header(bytes, why);
  if (!header) {
    YOKE_ENSURE(!why.empty(), "a refusal says why.");
    return;
  }
  auto again = encode(*header);
  YOKE_ENSURE(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()),
              "a header that is accepted is the one that encode() makes.");
  for (std::size_t bit = 0; bit < again.size() * 8; ++bit) {
    auto damaged = again;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    YOKE_ENSURE(!decode_frame_header(damaged, why), "bit ", bit,
                " of a header may not change unseen.");
  }
}

void check_decoders(std::span<const std::byte> bytes) {
  check_frame_header(bytes);
  check_frame_header(bytes.first(std::min(bytes.size(), kFrameHeaderBytes)));
  if (auto greeting = decode_greeting(bytes.first(std::min(bytes.size(), kGreetingBytes)))) {
    YOKE_ENSURE(decode_greeting(encode(*greeting)) == greeting, "greeting.");
  }
  if (auto failure = decode_failure(bytes)) {
    auto again = decode_failure(encode(*failure));
    YOKE_ENSURE(again && again->kind == failure->kind && again->rank == failure->rank, "failure.");
  }
  if (auto ranks = decode_ranks(bytes)) {
    YOKE_ENSURE(decode_ranks(encode(*ranks)) == ranks, "ranks.");
  }
  if (auto request = decode_store_request(bytes)) {
    auto message = encode(*request);
    auto body = first_message(message);
    YOKE_ENSURE(body && std::equal(body->begin(), body->end(), bytes.begin(), bytes.end()),
                "request.");
  }
  if (auto response = decode_store_response(bytes)) {
    auto message = encode(*response);
    YOKE_ENSURE(first_message(message).has_value(), "response.");
  }
  try {
    if (auto body = first_message(bytes)) {
      YOKE_ENSURE(body->size() + kStoreLengthBytes <= bytes.size(),
                  "a message lies inside its buffer.");
    }
  } catch (const CommunicationError&) {
    // A length beyond the limit is refused.
  }
}

}  // namespace
}  // namespace yoke::net

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  yoke::net::check_decoders(std::as_bytes(std::span(data, size)));
  return 0;
}
