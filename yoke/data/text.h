#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "yoke/data/dataset.h"

namespace yoke::data {

/// The characters of a text, sorted by code point; a token is a character's place among them.
class Vocabulary {
 public:
  explicit Vocabulary(const std::u32string& text);

  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }
  const std::u32string& characters() const { return characters_; }
  /// -1 for a character that is not in it.
  std::int32_t token_of(char32_t character) const;
  /// Throws DataError with the position of the first character that is not in it; `name` is the
  /// text's.
  std::vector<std::int32_t> tokens_of(const std::u32string& text, const std::string& name) const;

 private:
  std::u32string characters_;
};

/// Windows of `length` tokens that follow each other without overlap; the target of a token is the
/// next one. What does not fill a window at the end is left out.
class Text final : public Dataset {
 public:
  /// `tokens` has at least length + 1 of them.
  Text(std::shared_ptr<const Vocabulary> vocabulary, std::vector<std::int32_t> tokens,
       std::int64_t length);

  std::int64_t size() const override {
    return (static_cast<std::int64_t>(tokens_.size()) - 1) / length_;
  }
  Shape shape() const override;
  Batch get(std::span<const std::int64_t> indices) const override;
  std::string identity() const override { return identity_; }
  std::string decode(std::span<const std::int64_t> tokens) const override;
  std::vector<std::int64_t> encode(const std::string& text) const override;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<std::int32_t> tokens_;
  std::int64_t length_;
  std::string identity_;
};

/// Makes the training set of the text in `content` and the test set of its end (`hold_out` of its
/// characters; none if 0). Throws DataError: not UTF-8, or either shorter than length + 1
/// characters.
TrainAndTest split_text(const std::string& content, const std::string& name, std::int64_t length,
                        double hold_out);

/// The same with a text of its own for the test set, whose characters must occur in the other.
TrainAndTest pair_texts(const std::string& train, const std::string& train_name,
                        const std::string& test, const std::string& test_name, std::int64_t length);

}  // namespace yoke::data
