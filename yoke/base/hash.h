#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace yoke {

/// CRC-32C (Castagnoli, as in iSCSI, RFC 3720; ISA-L). `crc32c("123456789") == 0xe3069283`.
/// `seed` is the value for what came before, 0 at the start.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

/// XXH3, 64 bits: fast, not cryptographic.
std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t xxh3(std::string_view text, std::uint64_t seed = 0);

/// SHA-256 (OpenSSL), fed piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view text);
  /// 64 lower-case hexadecimal digits. The object is spent.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::span<const std::byte> bytes);

/// HMAC-SHA256 of `message` under `key` (RFC 2104; OpenSSL).
std::array<std::byte, 32> hmac_sha256(std::string_view key, std::span<const std::byte> message);

/// Compares in constant time.
bool same_secret(std::span<const std::byte> a, std::span<const std::byte> b);

/// `hex_digits` random hexadecimal digits from the operating system's generator. For tokens, nonces
/// and names of temporary files, never for training. Throws ResourceError.
std::string random_token(std::size_t hex_digits = 32);

}  // namespace yoke
