#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace yoke::net {

/// What the client of a store may ask. The values travel.
enum class StoreOperation : std::uint8_t { kSet = 1, kGet = 2, kAdd = 3 };

/// One question: a length, then operation, number (milliseconds to wait, or the amount), key and
/// value.
struct StoreRequest {
  StoreOperation operation = StoreOperation::kGet;
  std::int64_t number = 0;
  std::string key;
  std::string value;
};

/// One answer: a length, then these.
struct StoreResponse {
  bool found = true;
  std::int64_t number = 0;
  std::string value;
};

/// A store is for addresses and agreements; more than this in one message is a mistake.
inline constexpr std::size_t kStoreMessageBytes = 16 << 20;

std::vector<std::byte> encode(const StoreRequest& request);
std::vector<std::byte> encode(const StoreResponse& response);

/// The body of the first message in `buffer`, or nothing while it is not complete. Throws
/// CommunicationError for a length beyond kStoreMessageBytes.
std::optional<std::span<const std::byte>> first_message(std::span<const std::byte> buffer);
inline constexpr std::size_t kStoreLengthBytes = 4;

/// Nothing for a body that cannot be one.
std::optional<StoreRequest> decode_store_request(std::span<const std::byte> body);
std::optional<StoreResponse> decode_store_response(std::span<const std::byte> body);

}  // namespace yoke::net
