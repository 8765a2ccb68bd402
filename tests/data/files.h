#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/data/dataset.h"

namespace yoke::data {

/// A folder of its own for each test, the data files it writes, and what loading them says.
class DataFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) {
    auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  std::string folder() const { return folder_.path().string(); }

  /// The message of the error E, or "loaded".
  template <typename E>
  static std::string refusal(const DataOptions& options, const std::string& beside = "") {
    try {
      load(options, beside);
    } catch (const E& error) {
      return error.what();
    }
    return "loaded";
  }

 private:
  TemporaryFolder folder_;
};

/// The files that the repository brings.
inline std::string shipped(const std::string& name) {
  return std::string(YOKE_SOURCE_FOLDER "/data/") + name;
}

}  // namespace yoke::data
