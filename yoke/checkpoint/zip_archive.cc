#include "yoke/checkpoint/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "yoke/base/error.h"

namespace yoke::checkpoint {

namespace {

constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kCentralBytes = 46,
                      kLocalBytes = 30;
constexpr std::uint32_t kEndMark = 0x06054b50, kLocatorMark = 0x07064b50, kEnd64Mark = 0x06064b50,
                        kCentralMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::uint32_t kIn64 = 0xffffffff;  ///< the value stands in a 64-bit field

[[noreturn]] void fail(const InputFile& file, const std::string& what) {
  throw CheckpointError(cat(file.path().string(), " is a damaged archive: ", what, "."));
}

/// A little-endian number at a position of `bytes`, which must hold it.
template <typename T>
T number(std::span<const std::byte> bytes, std::size_t at, const InputFile& file) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) fail(file, "a record is cut off");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<std::byte> part(const InputFile& file, std::uint64_t offset, std::uint64_t bytes) {
  if (offset > file.size() || bytes > file.size() - offset) fail(file, "it ends too early");
  std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  file.read(offset, out);
  return out;
}

struct Directory {
  std::uint64_t offset = 0, bytes = 0, entries = 0;
};

Directory find_directory(const InputFile& file) {
  const std::uint64_t tail = std::min<std::uint64_t>(file.size(), kEndBytes + 0xffff);
  const auto bytes = part(file, file.size() - tail, tail);
  for (std::size_t at = bytes.size() < kEndBytes ? 0 : bytes.size() - kEndBytes + 1; at-- > 0;) {
    if (number<std::uint32_t>(bytes, at, file) != kEndMark) continue;
    Directory directory{number<std::uint32_t>(bytes, at + 16, file),
                        number<std::uint32_t>(bytes, at + 12, file),
                        number<std::uint16_t>(bytes, at + 10, file)};
    if (at < kLocatorBytes ||
        number<std::uint32_t>(bytes, at - kLocatorBytes, file) != kLocatorMark)
      return directory;
    const auto end =
        part(file, number<std::uint64_t>(bytes, at - kLocatorBytes + 8, file), kEnd64Bytes);
    if (number<std::uint32_t>(end, 0, file) != kEnd64Mark) fail(file, "its 64-bit end is missing");
    return {number<std::uint64_t>(end, 48, file), number<std::uint64_t>(end, 40, file),
            number<std::uint64_t>(end, 32, file)};
  }
  fail(file, "it has no directory; it may be cut off");
}

/// Puts the values of the 64-bit field in place of those that say kIn64.
void take_64(std::span<const std::byte> extra, std::span<std::uint64_t* const> values,
             const InputFile& file) {
  for (std::size_t at = 0; extra.size() - at >= 4;) {
    const auto id = number<std::uint16_t>(extra, at, file);
    const std::size_t size = number<std::uint16_t>(extra, at + 2, file);
    if (size > extra.size() - at - 4) fail(file, "a record is cut off");
    const auto field = extra.subspan(at + 4, size);
    std::size_t next = 0;
    for (std::uint64_t* value : values) {
      if (id != 1 || *value != kIn64) continue;
      *value = number<std::uint64_t>(field, next, file);
      next += sizeof *value;
    }
    at += 4 + size;
  }
}

/// Where the bytes of an entry begin: its own header, before them, has a length of its own.
std::uint64_t start_of(const InputFile& file, std::uint64_t header) {
  const auto local = part(file, header, kLocalBytes);
  if (number<std::uint32_t>(local, 0, file) != kLocalMark) fail(file, "a file in it is missing");
  return header + kLocalBytes + number<std::uint16_t>(local, 26, file) +
         number<std::uint16_t>(local, 28, file);
}

}  // namespace

ZipArchive::ZipArchive(const InputFile& file) : file_(file) {
  const Directory directory = find_directory(file);
  const auto bytes = part(file, directory.offset, directory.bytes);
  const std::span<const std::byte> all(bytes);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (number<std::uint32_t>(all, at, file) != kCentralMark) fail(file, "its directory is broken");
    const auto method = number<std::uint16_t>(all, at + 10, file);
    std::uint64_t packed = number<std::uint32_t>(all, at + 20, file);
    std::uint64_t size = number<std::uint32_t>(all, at + 24, file);
    std::uint64_t header = number<std::uint32_t>(all, at + 42, file);
    const std::size_t name_bytes = number<std::uint16_t>(all, at + 28, file);
    const std::size_t extra_bytes = number<std::uint16_t>(all, at + 30, file);
    const std::size_t comment_bytes = number<std::uint16_t>(all, at + 32, file);
    if (name_bytes + extra_bytes + comment_bytes > all.size() - at - kCentralBytes)
      fail(file, "its directory is cut off");
    const auto* name = reinterpret_cast<const char*>(all.data()) + at + kCentralBytes;
    const std::array<std::uint64_t*, 3> values{&size, &packed, &header};
    take_64(all.subspan(at + kCentralBytes + name_bytes, extra_bytes), values, file);
    const Entry entry{start_of(file, header), packed, number<std::uint32_t>(all, at + 16, file),
                      method == 0 && packed == size};
    has_checksums_ |= entry.crc32 != 0;
    if (entry.offset > file.size() || entry.bytes > file.size() - entry.offset)
      fail(file, "a file in it is cut off");
    if (!entries_.try_emplace(std::string(name, name_bytes), entry).second)
      fail(file, "two files in it have one name");
    at += kCentralBytes + name_bytes + extra_bytes + comment_bytes;
  }
}

const ZipArchive::Entry& ZipArchive::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail(file_, cat(name, " is missing in it"));
  if (!found->second.is_stored)
    fail(file_, cat(name, " is compressed, which torch.save() never does"));
  return found->second;
}

void ZipArchive::verify(const std::string& name) const {
  const Entry& about = entry(name);
  if (!has_checksums_) return;
  std::vector<std::byte> chunk(
      static_cast<std::size_t>(std::min<std::uint64_t>(about.bytes, 1 << 20)));
  uLong checksum = ::crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at < about.bytes; at += chunk.size()) {
    const auto piece = std::span(chunk).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), about.bytes - at)));
    file_.read(about.offset + at, piece);
    checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(piece.data()),
                       static_cast<uInt>(piece.size()));
  }
  if (checksum != about.crc32) fail(file_, cat(name, " does not have its checksum"));
}

std::string ZipArchive::read(const std::string& name) const {
  verify(name);
  const Entry& about = entry(name);
  std::string content(static_cast<std::size_t>(about.bytes), '\0');
  file_.read(about.offset, std::as_writable_bytes(std::span(content)));
  return content;
}

}  // namespace yoke::checkpoint
