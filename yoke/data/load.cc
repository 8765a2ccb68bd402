#include <cmath>
#include <filesystem>

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/random.h"
#include "yoke/data/csv.h"
#include "yoke/data/dataset.h"
#include "yoke/data/idx.h"
#include "yoke/data/text.h"

namespace yoke::data {
namespace {

namespace fs = std::filesystem;

fs::path find_file(const std::string& path, const std::string& key, const std::string& beside) {
  if (path.empty()) throw ConfigError(cat(key, " is empty. Name a file."));
  if (fs::exists(path)) return path;
  if (fs::path(path).is_relative() && !beside.empty()) {
    for (fs::path folder = fs::absolute(beside);; folder = folder.parent_path()) {
      if (fs::exists(folder / path)) return (folder / path).lexically_normal();
      if (folder == folder.parent_path()) break;
    }
  }
  throw DataError(cat(key, ": there is no file ", path, " in ", fs::current_path().string(),
                      beside.empty()
                          ? std::string()
                          : cat(", nor in ", fs::absolute(beside).string(), " or above it"),
                      ". Correct ", key, ", or fetch the file."));
}

struct File {
  std::string name, content;
};

File read(const std::string& path, const std::string& key, const std::string& beside) {
  auto found = find_file(path, key, beside);
  return {.name = found.string(), .content = read_gzip_or_plain(found)};
}

void refuse(bool given, const char* key, const DataOptions& options) {
  if (given)
    throw ConfigError(
        cat(key, " has no meaning for data.kind = \"", options.kind, "\". Leave it out."));
}

/// A table, and the file that its errors name.
struct NamedTable {
  TableContent content;
  std::string name;
};

/// `hold_out` of the rows, drawn by the seed, become the test set; both keep the order of the file.
TrainAndTest hold_out_rows(const NamedTable& table, std::int64_t classes,
                           const DataOptions& options) {
  auto rows = static_cast<std::int64_t>(table.content.labels.size());
  auto held = std::llround(options.hold_out * static_cast<double>(rows));
  if (held == 0 || held == rows) {
    throw DataError(cat(table.name, ": a data.hold_out of ", options.hold_out, " leaves ",
                        rows - held, " of ", rows, " samples to train on and ", held,
                        " to evaluate on. Choose another, or 0 for none."));
  }
  auto order = RandomKey(options.hold_out_seed).with("data.hold_out").permutation(rows);
  std::vector<bool> is_held(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < held; ++i)
    is_held[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  std::vector<std::int64_t> train, test;
  for (std::int64_t row = 0; row < rows; ++row)
    (is_held[static_cast<std::size_t>(row)] ? test : train).push_back(row);
  return {.train = std::make_shared<Table>(table.content.select(train), classes),
          .test = std::make_shared<Table>(table.content.select(test), classes)};
}

template <typename Read>
TrainAndTest load_tables(const DataOptions& options, Read read_table) {
  NamedTable train = read_table(options.path, "data.path", options.labels, "data.labels");
  std::int64_t classes = classes_of(train.content, train.name);
  if (!options.test_path.empty()) {
    NamedTable test =
        read_table(options.test_path, "data.test_path", options.test_labels, "data.test_labels");
    check_fits(test.content, test.name, train.content, classes);
    return {.train = std::make_shared<Table>(std::move(train.content), classes),
            .test = std::make_shared<Table>(std::move(test.content), classes)};
  }
  if (options.hold_out > 0) return hold_out_rows(train, classes, options);
  return {.train = std::make_shared<Table>(std::move(train.content), classes), .test = nullptr};
}

TrainAndTest load_csv(const DataOptions& options, const std::string& beside) {
  refuse(!options.labels.empty(), "data.labels", options);
  refuse(!options.test_labels.empty(), "data.test_labels", options);
  return load_tables(options, [&](const auto& path, const char* key, const auto&, const char*) {
    auto file = read(path, key, beside);
    return NamedTable{.content = parse_csv(file.content, file.name, options.scale),
                      .name = file.name};
  });
}

TrainAndTest load_idx(const DataOptions& options, const std::string& beside) {
  refuse(options.test_path.empty() && !options.test_labels.empty(),
         "data.test_labels without data.test_path", options);
  return load_tables(options, [&](const auto& path, const char* key, const auto& labels_path,
                                  const char* labels_key) {
    auto images = read(path, key, beside);
    auto labels = read(labels_path, labels_key, beside);
    return NamedTable{.content = parse_idx(images.content, images.name, labels.content, labels.name,
                                           options.scale),
                      .name = labels.name};
  });
}

TrainAndTest load_text(const DataOptions& options, const std::string& beside) {
  refuse(!options.labels.empty(), "data.labels", options);
  refuse(!options.test_labels.empty(), "data.test_labels", options);
  refuse(options.scale != 1.0, "data.scale", options);
  if (options.length < 1)
    throw ConfigError(cat("data.length must be 1 or more, and is ", options.length, "."));
  auto train = read(options.path, "data.path", beside);
  if (options.test_path.empty())
    return split_text(train.content, train.name, options.length, options.hold_out);
  auto test = read(options.test_path, "data.test_path", beside);
  return pair_texts(train.content, train.name, test.content, test.name, options.length);
}

}  // namespace

TrainAndTest load(const DataOptions& options, const std::string& beside) {
  if (!(options.hold_out >= 0.0 && options.hold_out < 1.0)) {
    throw ConfigError(
        cat("data.hold_out must be at least 0 and below 1, and is ", options.hold_out, "."));
  }
  if (!std::isfinite(options.scale) || options.scale == 0.0) {
    throw ConfigError(cat("data.scale must be a number other than 0, and is ", options.scale, "."));
  }
  if (options.kind == "csv") return load_csv(options, beside);
  if (options.kind == "idx") return load_idx(options, beside);
  if (options.kind == "text") return load_text(options, beside);
  auto guess = did_you_mean(options.kind, {"csv", "idx", "text"});
  throw ConfigError(cat("no kind of data is called \"", options.kind, "\". ",
                        guess ? cat("Did you mean \"", *guess, "\"? ") : std::string(),
                        "There are csv, idx and text."));
}

}  // namespace yoke::data
