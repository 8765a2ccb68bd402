#include "yoke/net/store_protocol.h"

#include "yoke/base/error.h"
#include "yoke/net/bytes.h"

namespace yoke::net {
namespace {

std::vector<std::byte> with_length(ByteWriter& body) {
  ByteWriter message;
  message.put(static_cast<std::uint32_t>(body.bytes().size())).put(body.bytes());
  if (message.bytes().size() > kStoreMessageBytes) {
    throw ConfigError(cat("a value of ", message.bytes().size(),
                          " bytes is too long for the store, which takes ", kStoreMessageBytes,
                          ". Send it through a communicator."));
  }
  return std::move(message.bytes());
}

}  // namespace

std::vector<std::byte> encode(const StoreRequest& request) {
  ByteWriter body;
  body.put(static_cast<std::uint8_t>(request.operation)).put(request.number);
  body.put_text(request.key).put_text(request.value);
  return with_length(body);
}

std::vector<std::byte> encode(const StoreResponse& response) {
  ByteWriter body;
  body.put(static_cast<std::uint8_t>(response.found ? 1 : 0)).put(response.number);
  body.put_text(response.value);
  return with_length(body);
}

std::optional<std::span<const std::byte>> first_message(std::span<const std::byte> buffer) {
  if (buffer.size() < kStoreLengthBytes) {
    return std::nullopt;
  }
  auto length = ByteReader(buffer).get<std::uint32_t>();
  if (length > kStoreMessageBytes) {
    throw CommunicationError(cat("a store message of ", length, " bytes cannot be: the limit is ",
                                 kStoreMessageBytes, "."));
  }
  if (buffer.size() - kStoreLengthBytes < length) {
    return std::nullopt;
  }
  return buffer.subspan(kStoreLengthBytes, length);
}

std::optional<StoreRequest> decode_store_request(std::span<const std::byte> body) {
  ByteReader in(body);
  StoreRequest request;
  auto operation = in.get<std::uint8_t>();
  request.operation = static_cast<StoreOperation>(operation);
  request.number = in.get<std::int64_t>();
  request.key = in.get_text();
  request.value = in.get_text();
  bool known = operation >= static_cast<std::uint8_t>(StoreOperation::kSet) &&
               operation <= static_cast<std::uint8_t>(StoreOperation::kAdd);
  return in.finished() && known ? std::optional(std::move(request)) : std::nullopt;
}

std::optional<StoreResponse> decode_store_response(std::span<const std::byte> body) {
  ByteReader in(body);
  StoreResponse response;
  response.found = in.get<std::uint8_t>() != 0;
  response.number = in.get<std::int64_t>();
  response.value = in.get_text();
  return in.finished() ? std::optional(std::move(response)) : std::nullopt;
}

}  // namespace yoke::net
