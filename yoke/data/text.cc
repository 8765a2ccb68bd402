#include "yoke/data/text.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/data/identity.h"
#include "yoke/data/utf8.h"

namespace yoke::data {
namespace {

std::u32string characters_in(std::string_view content, const std::string& name) {
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
  return decode_utf8(content, name);
}

std::shared_ptr<const Dataset> windows(std::shared_ptr<const Vocabulary> vocabulary,
                                       std::vector<std::int32_t> tokens, std::int64_t length,
                                       const std::string& name, const char* part) {
  auto found = static_cast<std::int64_t>(tokens.size());
  if (found < length + 1) {
    throw DataError(cat(name, ": ", part, " has ", found,
                        " characters, but one sample of data.length ", length, " needs ",
                        length + 1,
                        ". Take a longer text, a smaller data.length or another data.hold_out."));
  }
  return std::make_shared<Text>(std::move(vocabulary), std::move(tokens), length);
}

}  // namespace

Vocabulary::Vocabulary(const std::u32string& text) : characters_(text) {
  std::sort(characters_.begin(), characters_.end());
  characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
}

std::int32_t Vocabulary::token_of(char32_t character) const {
  auto place = std::lower_bound(characters_.begin(), characters_.end(), character);
  if (place == characters_.end() || *place != character) return -1;
  return static_cast<std::int32_t>(place - characters_.begin());
}

std::vector<std::int32_t> Vocabulary::tokens_of(const std::u32string& text,
                                                const std::string& name) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (char32_t character : text) {
    std::int32_t token = token_of(character);
    if (token < 0) {
      throw DataError(cat(name, ": character ", tokens.size() + 1, " is \"",
                          encode_utf8({&character, 1}),
                          "\", which does not occur in the training text."));
    }
    tokens.push_back(token);
  }
  return tokens;
}

Text::Text(std::shared_ptr<const Vocabulary> vocabulary, std::vector<std::int32_t> tokens,
           std::int64_t length)
    : vocabulary_(std::move(vocabulary)), tokens_(std::move(tokens)), length_(length) {
  YOKE_ENSURE(size() >= 1, tokens_.size(), " tokens do not fill a sample of ", length, ".");
  const auto& characters = vocabulary_->characters();
  identity_ = Identity()
                  .add(std::vector<char32_t>(characters.begin(), characters.end()))
                  .add(tokens_)
                  .add(length_)
                  .hex();
}

Shape Text::shape() const {
  return {.input = {length_}, .classes = vocabulary_->size(), .tokens = true};
}

Batch Text::get(std::span<const std::int64_t> indices) const {
  auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{.input = at::empty({count, length_}, at::kLong),
              .target = at::empty({count, length_}, at::kLong),
              .weight = count * length_};
  auto* input = batch.input.mutable_data_ptr<std::int64_t>();
  auto* target = batch.target.mutable_data_ptr<std::int64_t>();
  for (std::int64_t index : indices) {
    YOKE_ENSURE(index >= 0 && index < size(), "index ", index, " of a data set of ", size(),
                " samples.");
    auto first = tokens_.begin() + index * length_;
    input = std::copy(first, first + length_, input);
    target = std::copy(first + 1, first + length_ + 1, target);
  }
  return batch;
}

std::string Text::decode(std::span<const std::int64_t> tokens) const {
  std::u32string characters;
  for (std::int64_t token : tokens) {
    if (token < 0 || token >= vocabulary_->size()) {
      throw ConfigError(
          cat("token ", token, " is not one of the ", vocabulary_->size(), " of this text."));
    }
    characters += vocabulary_->characters()[static_cast<std::size_t>(token)];
  }
  return encode_utf8(characters);
}

std::vector<std::int64_t> Text::encode(const std::string& text) const {
  std::vector<std::int64_t> tokens;
  for (char32_t character : decode_utf8(text, "the text to encode")) {
    std::int32_t token = vocabulary_->token_of(character);
    if (token < 0) {
      throw ConfigError(cat("the character \"", encode_utf8({&character, 1}),
                            "\" does not occur in the training text; leave it out."));
    }
    tokens.push_back(token);
  }
  return tokens;
}

TrainAndTest split_text(const std::string& content, const std::string& name, std::int64_t length,
                        double hold_out) {
  auto characters = characters_in(content, name);
  auto vocabulary = std::make_shared<const Vocabulary>(characters);
  auto tokens = vocabulary->tokens_of(characters, name);
  auto held =
      static_cast<std::ptrdiff_t>(std::llround(hold_out * static_cast<double>(tokens.size())));
  std::vector<std::int32_t> end(tokens.end() - held, tokens.end());
  tokens.resize(tokens.size() - end.size());
  TrainAndTest sets;
  sets.train = windows(vocabulary, std::move(tokens), length, name, "the training part");
  if (hold_out > 0) sets.test = windows(vocabulary, std::move(end), length, name, "the hold-out");
  return sets;
}

TrainAndTest pair_texts(const std::string& train, const std::string& train_name,
                        const std::string& test, const std::string& test_name,
                        std::int64_t length) {
  auto characters = characters_in(train, train_name);
  auto vocabulary = std::make_shared<const Vocabulary>(characters);
  auto test_tokens = vocabulary->tokens_of(characters_in(test, test_name), test_name);
  return {.train = windows(vocabulary, vocabulary->tokens_of(characters, train_name), length,
                           train_name, "the text"),
          .test = windows(vocabulary, std::move(test_tokens), length, test_name, "the text")};
}

}  // namespace yoke::data
