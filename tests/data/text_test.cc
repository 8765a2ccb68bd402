#include "yoke/data/text.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <numeric>

#include "files.h"
#include "yoke/data/utf8.h"

namespace yoke::data {
namespace {

using testing::HasSubstr;

class TextFiles : public DataFiles {
 protected:
  DataOptions options(std::string_view content, std::int64_t length, double hold_out = 0.0) {
    return {
        .kind = "text", .path = write("text.txt", content), .hold_out = hold_out, .length = length};
  }
};

std::string text_of(const Dataset& set, const at::Tensor& tokens) {
  auto flat = tokens.contiguous();
  auto count = static_cast<std::size_t>(flat.numel());
  return set.decode({flat.const_data_ptr<std::int64_t>(), count});
}

/// The inputs of all samples, joined, and their targets.
std::pair<std::string, std::string> all_of(const Dataset& set) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(set.size()));
  std::iota(all.begin(), all.end(), 0);
  auto batch = set.get(all);
  return {text_of(set, batch.input), text_of(set, batch.target)};
}

TEST_F(TextFiles, WindowsFollowEachOtherAndTheTargetIsTheNextCharacter) {
  const std::string content = "the quick brown fox jumps";  // 25 characters
  for (std::int64_t length : {1, 3, 4, 8, 24}) {
    auto sets = load(options(content, length), "");
    std::int64_t windows = 24 / length;
    EXPECT_EQ(sets.test, nullptr);
    EXPECT_EQ(sets.train->size(), windows);
    EXPECT_THAT(sets.train->shape().input, testing::ElementsAre(length));
    EXPECT_TRUE(sets.train->shape().tokens);
    auto [inputs, targets] = all_of(*sets.train);
    EXPECT_EQ(inputs, content.substr(0, static_cast<std::size_t>(windows * length)));
    EXPECT_EQ(targets, content.substr(1, static_cast<std::size_t>(windows * length)));
    std::vector<std::int64_t> one{0};
    EXPECT_EQ(sets.train->get(one).weight, length);
  }
}

TEST_F(TextFiles, TheVocabularyIsThatOfTheWholeFileSorted) {
  auto sets = load(options("bbbbaaaab\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", 2, 0.3), "");
  EXPECT_EQ(sets.train->shape().classes, 5);
  EXPECT_EQ(sets.test->shape().classes, 5) << "the hold-out's characters count too";
  std::vector<std::int64_t> every{0, 1, 2, 3, 4};
  EXPECT_EQ(sets.train->decode(every), "ab\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82");
  EXPECT_EQ(sets.train->encode("\xe2\x82\xac"
                               "ba"),
            (std::vector<std::int64_t>{3, 1, 0}));
  EXPECT_THROW(sets.train->encode("abc"), ConfigError);
  std::vector<std::int64_t> beyond{5};
  EXPECT_THROW(sets.train->decode(beyond), ConfigError);
}

TEST_F(TextFiles, TheHoldOutIsTheEnd) {
  auto sets = load(options("aaaaaaaaaabbbbbbbbbb", 3, 0.5), "");
  EXPECT_EQ(all_of(*sets.train).first, "aaaaaaaaa");
  EXPECT_EQ(all_of(*sets.test).first, "bbbbbbbbb");
  EXPECT_EQ(all_of(*sets.train).second, "aaaaaaaaa") << "no character of the hold-out is a target";
}

TEST_F(TextFiles, TooShortATextIsRefused) {
  EXPECT_THAT(refusal<DataError>(options("", 3)),
              HasSubstr("text.txt: the training part has 0 characters"));
  EXPECT_THAT(refusal<DataError>(options("abc", 3)), HasSubstr("has 3 characters, but one sample"));
  EXPECT_EQ(refusal<DataError>(options("abcd", 3)), "loaded");
  EXPECT_THAT(refusal<DataError>(options("abcdefghij", 3, 0.2)),
              HasSubstr("the hold-out has 2 characters"));
  EXPECT_THAT(refusal<ConfigError>(options("abc", 0)), HasSubstr("data.length"));
}

TEST_F(TextFiles, WhatIsNotUtf8IsRefusedWithItsOffset) {
  for (std::string_view bad :
       {"ab\xff"
        "cd",
        "ab\xc3", "ab\xc0\xaf", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80", "ab\xe2\x28\xa1"}) {
    EXPECT_THAT(refusal<DataError>(options(bad, 1)), HasSubstr("text.txt: offset 2: not UTF-8"));
  }
}

TEST(Utf8, RoundTripsEveryCodePoint) {
  std::u32string all;
  for (char32_t c = 0; c < 0x110000; c += c < 0x900 ? 1 : 61) {
    if (c < 0xd800 || c > 0xdfff) all += c;
  }
  all += U"\ud7ff\ue000\uffff\U00010000\U0010ffff";
  EXPECT_EQ(decode_utf8(encode_utf8(all), "all"), all);
}

TEST_F(TextFiles, ATestTextSharesTheVocabulary) {
  auto choice = options("abcabcabc", 2);
  choice.test_path = write("test.txt", "cbacba");
  auto sets = load(choice, "");
  EXPECT_EQ(all_of(*sets.test).first, "cbac");
  EXPECT_EQ(sets.test->shape().classes, 3);
  choice.test_path = write("test.txt", "cbaxba");
  EXPECT_THAT(refusal<DataError>(choice), HasSubstr("test.txt: character 4 is \"x\""));
}

TEST_F(TextFiles, TheIdentityFollowsTextLengthAndVocabulary) {
  auto identity = [&](std::string_view content, std::int64_t length) {
    return load(options(content, length), "").train->identity();
  };
  EXPECT_EQ(identity("abcabc", 2), identity("abcabc", 2));
  EXPECT_NE(identity("abcabc", 2), identity("abcabc", 3));
  EXPECT_NE(identity("abcabc", 2), identity("abcabb", 2));
  EXPECT_NE(identity("abcabc", 2), identity("abdabd", 2)) << "the same tokens of other characters";
}

TEST_F(TextFiles, ReadsTheShippedNovel) {
  auto sets = load({.kind = "text",
                    .path = shipped("pride_and_prejudice.txt.gz"),
                    .hold_out = 0.1,
                    .length = 64},
                   "");
  EXPECT_EQ(sets.train->shape().classes, 75);
  EXPECT_EQ(sets.train->size(), (684'768 - 68'477 - 1) / 64);
  EXPECT_EQ(sets.test->size(), (68'477 - 1) / 64);
  std::vector<std::int64_t> first{0};
  EXPECT_THAT(text_of(*sets.train, sets.train->get(first).input),
              testing::StartsWith("PRIDE AND PREJUDICE\n"));
}

}  // namespace
}  // namespace yoke::data
