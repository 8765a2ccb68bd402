#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/random.h"

namespace yoke {
namespace {

using testing::HasSubstr;

std::string packed(const std::string& plain, int level) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class Gzip : public testing::Test {
 protected:
  std::string read(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return read_gzip_or_plain(path_);
  }
  std::string error_of(const std::string& content) {
    try {
      read(content);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "images.gz";
};

TEST_F(Gzip, GivesBackWhatWasPacked) {
  std::string noise(600000, ' ');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(RandomKey(1).bits(i));
  // The sizes around the pieces in which it inflates: 2^18 bytes.
  for (const std::string& plain :
       {std::string(), std::string("a"), std::string(1 << 18, 'x'), std::string((1 << 18) + 1, 'y'),
        std::string(1000000, 'z'), noise}) {
    for (const int level : {0, 1, 9}) EXPECT_TRUE(read(packed(plain, level)) == plain);
  }
}

TEST_F(Gzip, JoinsTheMembersOfAFile) {
  EXPECT_EQ(read(packed("one, ", 9) + packed("", 9) + packed("two", 1)), "one, two");
}

TEST_F(Gzip, LeavesAPlainFileAsItIs) {
  for (const std::string& plain :
       {std::string(), std::string("\x1f"), std::string("plain"), std::string("\0\0\x08\x03", 4)}) {
    EXPECT_EQ(read(plain), plain);
  }
  EXPECT_THROW(read_gzip_or_plain(folder_.path() / "missing"), IoError);
}

TEST_F(Gzip, EveryCutIsSeen) {
  const std::string whole = packed("some text that is long enough to be cut in many places", 9);
  for (std::size_t size = 2; size < whole.size(); ++size) {
    EXPECT_THAT(error_of(whole.substr(0, size)), HasSubstr("images.gz is a damaged gzip file"))
        << size;
  }
}

TEST_F(Gzip, DamageIsSeen) {
  std::string content = packed(std::string(100000, 'd'), 9);
  content[content.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(error_of(content), HasSubstr("damaged"));
  EXPECT_THAT(error_of(packed("text", 9) + "rubbish"), HasSubstr("something follows"));
}

}  // namespace
}  // namespace yoke
