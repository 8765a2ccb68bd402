// The house of docs/decisions/0001 and 0002, read off every #include: folders use those before them
// and no others, what comes before tensor/ knows nothing of libtorch, and fmt and spdlog never meet
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kSource = YOKE_SOURCE_FOLDER;

/// In the order of the house. Before the program stands yoke/yoke.h, the one header of the
/// library's users.
const std::vector<std::string> kFolders = {"base",    "observe", "net",     "comm",   "optim",
                                           "tensor",  "data",    "model",   "sync",   "checkpoint",
                                           "elastic", "train",   "cluster", "yoke.h", "cli"};

int floor_of(const std::string& folder) {
  const auto found = std::find(kFolders.begin(), kFolders.end(), folder);
  return found == kFolders.end() ? -1 : static_cast<int>(found - kFolders.begin());
}

bool is_torch(const std::string& header) {
  return header.starts_with("torch/") || header.starts_with("ATen/") || header.starts_with("c10/");
}
bool is_format(const std::string& header) {
  return header.starts_with("fmt/") || header.starts_with("spdlog/");
}

/// "yoke/net/tcp/wire.h" lies in "net"; the header of the library's users, in "yoke.h".
std::string folder_of(const std::string& path) {
  return path.substr(5, path.find('/', 5) - 5);
}

struct File {
  std::string path;  ///< from the root: "yoke/comm/block_plan.cc"
  std::string folder;
  std::vector<std::string> includes;
};

std::vector<File> files_of(const fs::path& root) {
  static const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<File> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / "yoke")) {
    const auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc") continue;
    const fs::path path = entry.path().lexically_relative(root);
    File file{path.string(), folder_of(path.string()), {}};
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (std::regex_search(line, match, include)) file.includes.push_back(match[1]);
    }
    files.push_back(std::move(file));
  }
  return files;
}

/// Every file of the tree that `path` includes, directly or not, and every other header that they
/// name.
std::set<std::string> reached_from(const std::string& path,
                                   const std::map<std::string, File>& by_path) {
  std::set<std::string> seen;
  std::vector<std::string> open = {path};
  while (!open.empty()) {
    const std::string next = open.back();
    open.pop_back();
    if (!seen.insert(next).second || !by_path.contains(next)) continue;
    const auto& includes = by_path.at(next).includes;
    open.insert(open.end(), includes.begin(), includes.end());
  }
  return seen;
}

/// What is wrong with a source tree, a line each.
std::vector<std::string> faults_of(const fs::path& root) {
  std::map<std::string, File> by_path;
  for (File& file : files_of(root)) by_path[file.path] = std::move(file);

  std::vector<std::string> faults;
  for (const auto& [path, file] : by_path) {
    const int floor = floor_of(file.folder);
    if (floor < 0) faults.push_back(path + " lies in a folder that the house does not have");
    for (const std::string& header : file.includes) {
      if (!header.starts_with("yoke/")) continue;
      if (floor_of(folder_of(header)) > floor) {
        faults.push_back(path + " includes " + header + ", which stands after it");
      }
    }
    const auto reached = reached_from(path, by_path);
    const bool torch = std::any_of(reached.begin(), reached.end(), is_torch);
    const bool format = std::any_of(reached.begin(), reached.end(), is_format);
    if (torch && floor < floor_of("tensor"))
      faults.push_back(path + " reaches a header of libtorch");
    if (format && path.ends_with(".h"))
      faults.push_back(path + " hands fmt or spdlog to those who include it");
    if (torch && format) faults.push_back(path + " reaches libtorch and fmt or spdlog together");
  }
  return faults;
}

std::string together(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

TEST(House, FoldersUseOnlyThoseBeforeThem) {
  EXPECT_GT(files_of(kSource).size(), 50u);
  const auto faults = faults_of(kSource);
  EXPECT_TRUE(faults.empty()) << together(faults);
}

TEST(House, TheBuildAddsTheFoldersInTheirOrder) {
  std::ifstream stream(kSource / "yoke/CMakeLists.txt");
  static const std::regex added(R"(add_subdirectory\((\w+)\))");
  std::vector<std::string> folders;
  for (std::string line; std::getline(stream, line);) {
    std::smatch match;
    if (std::regex_search(line, match, added)) folders.push_back(match[1]);
  }
  auto expected = kFolders;
  std::erase(expected, "yoke.h");
  EXPECT_EQ(folders, expected);
}

/// A tree of one wrong file each: that the check above can fail.
class BrokenHouse : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "yoke-house-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  fs::path root_;
};

TEST_F(BrokenHouse, AnUpwardIncludeIsFound) {
  write("yoke/net/a.cc", "#include \"yoke/comm/b.h\"\n");
  ASSERT_EQ(faults_of(root_).size(), 1u);
  EXPECT_EQ(faults_of(root_)[0], "yoke/net/a.cc includes yoke/comm/b.h, which stands after it");
}

TEST_F(BrokenHouse, AFolderThatUsesTheUsersHeaderIsFound) {
  write("yoke/train/a.cc", "#include \"yoke/yoke.h\"\n");
  EXPECT_EQ(together(faults_of(root_)),
            "yoke/train/a.cc includes yoke/yoke.h, which stands after it\n");
}

TEST_F(BrokenHouse, TorchBelowTensorIsFoundThroughAnotherHeader) {
  write("yoke/base/a.h", "  #  include <ATen/core/Tensor.h>\n");
  write("yoke/comm/b.cc", "#include \"yoke/base/a.h\"\n");
  EXPECT_EQ(
      together(faults_of(root_)),
      "yoke/base/a.h reaches a header of libtorch\nyoke/comm/b.cc reaches a header of libtorch\n");
}

TEST_F(BrokenHouse, FormattingBesideTorchIsFound) {
  write("yoke/model/a.cc", "#include <torch/torch.h>\n#include <spdlog/spdlog.h>\n");
  write("yoke/base/b.h", "#include <fmt/format.h>\n");
  EXPECT_EQ(together(faults_of(root_)),
            "yoke/base/b.h hands fmt or spdlog to those who include it\n"
            "yoke/model/a.cc reaches libtorch and fmt or spdlog together\n");
}

TEST_F(BrokenHouse, AFolderThatTheHouseDoesNotHaveIsFound) {
  write("yoke/utils/a.h", "\n");
  EXPECT_EQ(together(faults_of(root_)),
            "yoke/utils/a.h lies in a folder that the house does not have\n");
}

TEST_F(BrokenHouse, ARightTreeHasNoFaults) {
  write("yoke/base/log.cc", "#include <spdlog/spdlog.h>\n#include \"yoke/base/log.h\"\n");
  write("yoke/base/log.h", "#include <string>\n");
  write("yoke/tensor/a.cc", "#include <torch/torch.h>\n#include \"yoke/base/log.h\"\n");
  write("yoke/yoke.h", "#include \"yoke/train/run.h\"\n");
  write("yoke/train/run.h", "#include \"yoke/base/log.h\"\n");
  EXPECT_EQ(together(faults_of(root_)), "");
}

}  // namespace
