#include "yoke/data/idx.h"

#include "yoke/base/error.h"

namespace yoke::data {
namespace {

constexpr std::uint32_t kLabels = 0x801;
constexpr std::uint32_t kImages = 0x803;

std::uint32_t number_at(std::string_view content, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(content[offset + i]);
  return value;
}

std::string hexadecimal(std::uint32_t value) {
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 15];
  return text;
}

void check_header(std::string_view content, const std::string& name, std::uint32_t magic,
                  std::size_t header) {
  if (content.size() < header) {
    throw DataError(cat(name, ": the header has ", header, " bytes, but the file ", content.size(),
                        ". Fetch or copy it again."));
  }
  std::uint32_t found = number_at(content, 0);
  if (found == magic) return;
  const char* hint = "The file is not in IDX format, or not of bytes.";
  if (found == kLabels) hint = "These are labels: are data.path and data.labels swapped?";
  if (found == kImages) hint = "These are images: are data.path and data.labels swapped?";
  throw DataError(cat(name, ": offset 0: the magic number ", hexadecimal(magic), " expected, and ",
                      hexadecimal(found), " found. ", hint));
}

void check_body(std::string_view content, const std::string& name, std::size_t header,
                std::uint64_t count, std::uint64_t bytes_each) {
  if (count == 0 || bytes_each == 0) throw DataError(cat(name, ": it holds no samples."));
  std::uint64_t found = content.size() - header;
  // By division: the product of three numbers from a file may not fit.
  if (found / bytes_each != count || found % bytes_each != 0) {
    throw DataError(cat(name, ": the header promises ", count, " samples of ", bytes_each,
                        " bytes, but ", found, " bytes follow it (offset ", header,
                        "). The file is cut off or damaged; fetch it again."));
  }
}

}  // namespace

TableContent parse_idx(std::string_view images, const std::string& images_name,
                       std::string_view labels, const std::string& labels_name, double scale) {
  check_header(images, images_name, kImages, 16);
  check_header(labels, labels_name, kLabels, 8);
  std::uint64_t count = number_at(images, 4), rows = number_at(images, 8),
                columns = number_at(images, 12);
  check_body(images, images_name, 16, count, rows * columns);
  check_body(labels, labels_name, 8, number_at(labels, 4), 1);
  if (number_at(labels, 4) != count) {
    throw DataError(cat(images_name, " has ", count, " images, but ", labels_name, " ",
                        number_at(labels, 4), " labels. They do not belong together."));
  }
  images.remove_prefix(16);
  labels.remove_prefix(8);
  TableContent content{
      .shape = {1, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)},
      .inputs = Bytes{.values = {images.begin(), images.end()}, .scale = scale},
      .labels = {}};
  for (char label : labels) content.labels.push_back(static_cast<unsigned char>(label));
  return content;
}

}  // namespace yoke::data
