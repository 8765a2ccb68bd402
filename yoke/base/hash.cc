#include "yoke/base/hash.h"

#include <isa-l/crc.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "yoke/base/error.h"

namespace yoke {
namespace {

std::string hex_of(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  // ISA-L keeps the register as it is; the standard inverts it before and after. Its length is an
  // int.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  std::uint32_t inverted = ~seed;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kMost));
    auto* start = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    inverted = crc32_iscsi(start, static_cast<int>(piece.size()), inverted);
    bytes = bytes.subspan(piece.size());
  }
  return ~inverted;
}

std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t xxh3(std::string_view text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  YOKE_ENSURE(
      state_->context && EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1,
      "OpenSSL has no SHA-256.");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  YOKE_ENSURE(state_, "This Sha256 was read or moved from already.");
  YOKE_ENSURE(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1,
              "OpenSSL refused ", bytes.size(), " bytes.");
  return *this;
}

Sha256& Sha256::update(std::string_view text) {
  return update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::hex() {
  YOKE_ENSURE(state_, "This Sha256 was read or moved from already.");
  std::array<unsigned char, 32> digest{};
  YOKE_ENSURE(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr) == 1,
              "OpenSSL did not finish the digest.");
  state_.reset();
  return hex_of(digest);
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  return Sha256().update(bytes).hex();
}

std::array<std::byte, 32> hmac_sha256(std::string_view key, std::span<const std::byte> message) {
  std::array<std::byte, 32> code{};
  unsigned size = 0;
  const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                          reinterpret_cast<unsigned char*>(code.data()), &size);
  YOKE_ENSURE(made != nullptr && size == code.size(), "OpenSSL made no HMAC; key of ", key.size(),
              " bytes.");
  return code;
}

bool same_secret(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_token(std::size_t hex_digits) {
  std::vector<unsigned char> bytes((hex_digits + 1) / 2);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got < 0 && errno != EINTR) {
      throw ResourceError(cat(
          "the operating system gave no random bytes for a token: ", std::strerror(errno), "."));
    }
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  return hex_of(bytes).substr(0, hex_digits);
}

}  // namespace yoke
