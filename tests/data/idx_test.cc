#include "yoke/data/idx.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "files.h"

namespace yoke::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

std::string images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                   std::size_t bytes) {
  std::string content =
      big_endian(0x803) + big_endian(count) + big_endian(rows) + big_endian(columns);
  for (std::size_t i = 0; i < bytes; ++i) content += static_cast<char>(i * 17 % 256);
  return content;
}

std::string labels(std::uint32_t count, std::string_view values) {
  return big_endian(0x801) + big_endian(count) + std::string(values);
}

class Idx : public DataFiles {
 protected:
  DataOptions options(std::string_view image_file, std::string_view label_file) {
    return {.kind = "idx",
            .path = write("images", image_file),
            .labels = write("labels", label_file),
            .hold_out = 0};
  }
  std::string refused(std::string_view image_file, std::string_view label_file) {
    return refusal<DataError>(options(image_file, label_file));
  }
  const std::string good_images_ = images(3, 2, 4, 24);
  const std::string good_labels_ = labels(3, std::string_view("\x02\x00\x01", 3));
};

TEST_F(Idx, ReadsPicturesBetweenZeroAndOne) {
  auto choice = options(good_images_, good_labels_);
  auto sets = load(choice, "");
  EXPECT_THAT(sets.train->shape().input, testing::ElementsAre(1, 2, 4));
  EXPECT_EQ(sets.train->shape().classes, 3);
  std::vector<std::int64_t> order{1, 0};
  auto batch = sets.train->get(order);
  EXPECT_EQ(batch.input.sizes(), (at::IntArrayRef{2, 1, 2, 4}));
  EXPECT_EQ(batch.weight, 2);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(batch.input.flatten()[i].item<float>(),
              static_cast<float>((8 + i) * 17 % 256 / 255.0));
  }
  EXPECT_EQ(batch.target[0].item<std::int64_t>(), 0);
  EXPECT_EQ(batch.target[1].item<std::int64_t>(), 2);
  choice.scale = 2.0;
  auto scaled = load(choice, "");
  EXPECT_TRUE(scaled.train->get(order).input.equal(batch.input * 2));
  EXPECT_NE(scaled.train->identity(), sets.train->identity());
}

TEST_F(Idx, SaysWhereAndWhatIsWrong) {
  EXPECT_THAT(refused("", good_labels_),
              HasSubstr("images: the header has 16 bytes, but the file 0"));
  EXPECT_THAT(refused(good_images_, "\x01"),
              HasSubstr("labels: the header has 8 bytes, but the file 1"));
  EXPECT_THAT(refused("P5 2 4 255 and pixels", good_labels_),
              AllOf(HasSubstr("offset 0: the magic number 0x00000803 expected"),
                    HasSubstr("0x50352032 found")));
  EXPECT_THAT(refused(good_labels_ + std::string(9, 'x'), good_images_), HasSubstr("swapped?"));
  EXPECT_THAT(refused(images(3, 2, 4, 23), good_labels_),
              HasSubstr("promises 3 samples of 8 bytes, but 23 bytes follow it"));
  EXPECT_THAT(refused(images(3, 2, 4, 25), good_labels_), HasSubstr("but 25 bytes follow"));
  EXPECT_THAT(refused(images(0, 2, 4, 0), labels(0, "")), HasSubstr("holds no samples"));
  EXPECT_THAT(refused(images(3, 0, 4, 0), good_labels_), HasSubstr("holds no samples"));
  EXPECT_THAT(refused(images(0xffffffff, 0xffffffff, 0xffffffff, 8), good_labels_),
              HasSubstr("bytes follow it"));
  EXPECT_THAT(refused(good_images_, labels(2, std::string_view("\x00\x01", 2))),
              AllOf(HasSubstr("3 images"), HasSubstr("2 labels. They do not belong together")));
  EXPECT_THAT(refused(good_images_, labels(3, std::string_view("\x05\x05\x05", 3))),
              HasSubstr("labels: all 3 samples have the label 5"));
}

TEST_F(Idx, ATestLabelOutOfRangeIsRefused) {
  auto choice = options(good_images_, good_labels_);
  choice.test_path = write("test-images", images(1, 2, 4, 8));
  choice.test_labels = write("test-labels", labels(1, "\x03"));
  EXPECT_THAT(refusal<DataError>(choice), HasSubstr("test-labels: label 3 is out of range"));
  choice.test_labels = write("test-labels", labels(1, "\x02"));
  EXPECT_EQ(load(choice, "").test->size(), 1);
  choice.test_path = write("test-images", images(1, 4, 2, 8));
  EXPECT_THAT(refusal<DataError>(choice), HasSubstr("1x4x2"));
}

TEST_F(Idx, RefusesFilesThatItWouldIgnore) {
  auto choice = options(good_images_, good_labels_);
  choice.test_labels = "somewhere";
  EXPECT_THAT(refusal<ConfigError>(choice), HasSubstr("data.test_labels without data.test_path"));
  choice = options(good_images_, good_labels_);
  choice.labels.clear();
  EXPECT_THAT(refusal<ConfigError>(choice), HasSubstr("data.labels is empty"));
}

TEST_F(Idx, ReadsTheShippedPictures) {
  auto sets = load({.kind = "idx",
                    .path = shipped("train-images-idx3-ubyte.gz"),
                    .labels = shipped("train-labels-idx1-ubyte.gz"),
                    .test_path = shipped("t10k-images-idx3-ubyte.gz"),
                    .test_labels = shipped("t10k-labels-idx1-ubyte.gz")},
                   "");
  EXPECT_EQ(sets.train->size(), 8000);
  EXPECT_EQ(sets.test->size(), 2000);
  EXPECT_EQ(sets.train->shape().classes, 10);
  EXPECT_THAT(sets.train->shape().input, testing::ElementsAre(1, 28, 28));
  std::vector<std::int64_t> some{0, 17, 7999};
  auto batch = sets.train->get(some);
  EXPECT_GE(batch.input.min().item<float>(), 0.0f);
  EXPECT_GT(batch.input.max().item<float>(), 0.9f);
  EXPECT_LE(batch.input.max().item<float>(), 1.0f);
}

}  // namespace
}  // namespace yoke::data
