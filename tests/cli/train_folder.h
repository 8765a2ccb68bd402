#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/call.h"
#include "yoke/base/run_folder.h"

namespace yoke::test {

/// A folder with digits.toml in it (12 steps of 7 micro-batches), in which yoke is called.
class Train : public testing::Test {
 protected:
  void SetUp() override { write_run(kData); }

  void write_run(const std::string& data) {
    write_file_atomically(folder_.path() / "digits.toml",
                          "[data]\npath = \"" + data +
                              "\"\nscale = 0.0625\n[model]\nhidden = 24\ndropout = 0.1\n"
                              "[train]\nbatch = 50\nmicro_batch = 8\nsteps = 12\nseed = 3\n");
  }

  CallOptions here(std::vector<std::string> environment = {}) const {
    return {.folder = folder_.path(), .environment = std::move(environment)};
  }
  Answer call(const std::vector<std::string>& arguments,
              std::vector<std::string> environment = {}) const {
    return yoke(arguments, here(std::move(environment)));
  }
  Answer train(const std::string& run, std::vector<std::string> flags,
               std::vector<std::string> environment = {}) const {
    std::vector<std::string> arguments = {"train", "digits.toml", "--run", run};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return call(arguments, std::move(environment));
  }
  RunFolder run(const std::string& name) const { return RunFolder(folder_.path() / "runs" / name); }
  nlohmann::json report(const std::string& name) const { return read_json(run(name).report()); }
  static nlohmann::json read_json(const std::filesystem::path& file) {
    return nlohmann::json::parse(content_of(file), nullptr, false);
  }
  /// Waits until every rank of a run has noted itself and training has begun.
  bool trains(const std::string& name) const {
    return eventually([&] { return !content_of(run(name).metrics()).empty(); });
  }

  static constexpr const char* kData = YOKE_DATA_FOLDER "/digits.csv.gz";
  TemporaryFolder folder_;
};

}  // namespace yoke::test
