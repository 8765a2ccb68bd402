#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace yoke::data {

/// Some samples. `weight` is what the loss is a mean over: samples, or tokens of a text.
struct Batch {
  at::Tensor input;   ///< [n, ...]
  at::Tensor target;  ///< [n] int64 classes, or [n, length] int64 tokens
  std::int64_t weight = 0;
};

/// What a model must know of the data to be built.
struct Shape {
  std::vector<std::int64_t> input;  ///< of one sample: {64}, {1, 28, 28}, {length} of token ids
  std::int64_t classes = 0;         ///< classes, or size of the vocabulary
  bool tokens = false;              ///< a text: input and target are token ids
};

/// Samples addressed by index. Thread-safe for reading.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual Shape shape() const = 0;
  virtual Batch get(std::span<const std::int64_t> indices) const = 0;
  /// XXH3 over the content, 16 hex digits: part of the plan, so that a run never resumes on other
  /// data.
  virtual std::string identity() const = 0;
  /// For a text: the characters of token ids; others throw ConfigError.
  virtual std::string decode(std::span<const std::int64_t> tokens) const;
  virtual std::vector<std::int64_t> encode(const std::string& text) const;
};

struct DataOptions {
  std::string kind = "csv";  ///< "csv", "idx", "text"
  std::string path =
      {};  ///< csv, text: the file (gzip or plain). idx: the images of the training set
  std::string labels = {};     ///< idx: its labels
  std::string test_path = {};  ///< idx: images to evaluate on; csv, text: a file; empty: a hold-out
  std::string test_labels = {};
  double hold_out = 0.1;  ///< part kept for evaluation where there is no test file, 0 for none.
                          ///< csv, idx: rows drawn by hold_out_seed; text: the end
  std::uint64_t hold_out_seed = 0;
  std::int64_t length = 64;  ///< text: characters of a sample
  double scale = 1.0;        ///< csv, idx: inputs are multiplied by it (idx: after division by 255)
};

struct TrainAndTest {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;  ///< null if there is none
};

/// Loads by name. Relative paths are looked for from the working folder, then from `beside` (the
/// folder of the configuration file) and its parents. Throws DataError with file, line or offset,
/// what was expected and what was found: empty files, ragged rows, non-numbers, wrong magic, counts
/// that differ, labels out of range, cut-off gzip.
///
/// csv: numbers, the label (an integer >= 0) in the last column; a header line is skipped if it is
/// not numbers. idx: MNIST's format, ubyte, plain or gzip. text: characters (UTF-8 code points);
/// the vocabulary is those of the whole file, sorted; sample i is the characters i*length ..
/// i*length+length, its target the same moved by one.
TrainAndTest load(const DataOptions& options, const std::string& beside);

}  // namespace yoke::data
