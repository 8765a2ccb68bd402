#include "yoke/base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/random.h"

namespace yoke {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[std::to_integer<int>(byte >> 4)];
    text += "0123456789abcdef"[std::to_integer<int>(byte & std::byte{15})];
  }
  return text;
}

// RFC 3720, appendix B.4, and the check value of the CRC catalogues.
TEST(Crc32c, GivesThePublishedAnswers) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, IsTheSameInPieces) {
  std::string text(10007, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(RandomKey(1).bits(i));
  const std::uint32_t whole = crc32c(bytes_of(text));
  for (const std::size_t cut : {0u, 1u, 7u, 4096u, 10006u, 10007u}) {
    const std::uint32_t front = crc32c(bytes_of(text).first(cut));
    EXPECT_EQ(crc32c(bytes_of(text).subspan(cut), front), whole) << cut;
  }
}

TEST(Crc32c, SeesEverySingleFlippedBit) {
  std::string text = "a frame of forty bytes, give or take one";
  std::set<std::uint32_t> sums = {crc32c(bytes_of(text))};
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(sums.insert(crc32c(bytes_of(text))).second) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

// The empty input's value is in the specification's test vectors (XXH3, 64 bits, seed 0).
TEST(Xxh3, GivesThePublishedAnswer) {
  EXPECT_EQ(xxh3(std::string_view()), 0x2d06800538d394c2u);
  EXPECT_EQ(xxh3("layers.3"), xxh3(bytes_of("layers.3")));
  EXPECT_NE(xxh3("layers.3"), xxh3("layers.3", 1));
}

// FIPS 180-4 examples.
TEST(Sha256, GivesThePublishedAnswers) {
  EXPECT_EQ(Sha256().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces;
  for (int i = 0; i < 1000; ++i) pieces.update(std::string(1000, 'a'));
  EXPECT_EQ(pieces.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsSpentAfterItsAnswer) {
  Sha256 hash;
  hash.update("abc").hex();
  EXPECT_THROW(hash.update("d"), InternalError);
  EXPECT_THROW(hash.hex(), InternalError);
}

// RFC 4231, cases 1 and 2.
TEST(Hmac, GivesThePublishedAnswers) {
  EXPECT_EQ(hex_of(hmac_sha256(std::string(20, '\x0b'), bytes_of("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex_of(hmac_sha256("Jefe", bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Hmac, AcceptsAnEmptyKeyAndMessage) {
  EXPECT_EQ(hex_of(hmac_sha256("", {})),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Secrets, AreComparedByLengthAndContent) {
  EXPECT_TRUE(same_secret(bytes_of("token"), bytes_of("token")));
  EXPECT_FALSE(same_secret(bytes_of("token"), bytes_of("tokem")));
  EXPECT_FALSE(same_secret(bytes_of("token"), bytes_of("toke")));
  EXPECT_TRUE(same_secret({}, {}));
}

TEST(Secrets, TokensHaveTheirLengthAndDiffer) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const std::string token = random_token();
    EXPECT_EQ(token.size(), 32u);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ(random_token(7).size(), 7u);
  EXPECT_EQ(random_token(0), "");
}

}  // namespace
}  // namespace yoke
