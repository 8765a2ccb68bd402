#include <zlib.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <new>

#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

constexpr std::string_view kMagic = "\x1f\x8b";
constexpr std::size_t kPiece = std::size_t{1} << 18;

struct End {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

[[noreturn]] void throw_damaged(const std::filesystem::path& path, std::string_view how) {
  throw DataError(
      cat(path.string(), " is a damaged gzip file: ", how, ". Fetch or copy it again."));
}

/// Inflates the member that `packed` starts with, appends it to `plain`, and returns its packed
/// size.
std::size_t inflate_member(const std::filesystem::path& path, std::string_view packed,
                           std::string& plain) {
  z_stream stream{};
  // With these arguments it can lack nothing but memory.
  if (inflateInit2(&stream, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, End> guard(&stream);
  std::size_t given = 0;
  for (;;) {
    if (stream.avail_in == 0) {
      const std::size_t count = std::min<std::size_t>(packed.size() - given, UINT_MAX);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + given));
      stream.avail_in = static_cast<uInt>(count);
      given += count;
    }
    const std::size_t had = plain.size();
    plain.resize(had + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(plain.data() + had);
    stream.avail_out = static_cast<uInt>(kPiece);
    const int result = inflate(&stream, Z_NO_FLUSH);
    plain.resize(had + kPiece - stream.avail_out);
    if (result == Z_STREAM_END) return given - stream.avail_in;
    const bool all_given = stream.avail_in == 0 && given == packed.size();
    if (result == Z_BUF_ERROR || (result == Z_OK && all_given && stream.avail_out > 0)) {
      throw_damaged(path,
                    cat("it ends after ", plain.size(), " bytes, in the middle of the stream"));
    }
    if (result != Z_OK) {
      throw_damaged(path, stream.msg != nullptr ? stream.msg : "unknown contents");
    }
  }
}

}  // namespace

std::string read_gzip_or_plain(const std::filesystem::path& path) {
  std::string content = read_file(path);
  std::string_view packed = content;
  if (!packed.starts_with(kMagic)) return content;
  std::string plain;
  while (!packed.empty()) {
    if (!packed.starts_with(kMagic)) throw_damaged(path, "something follows the compressed data");
    packed.remove_prefix(inflate_member(path, packed, plain));
  }
  return plain;
}

}  // namespace yoke
