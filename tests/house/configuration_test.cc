// docs/configuration.md has a row for every key, with its default and its help as the program knows
// them, and no other.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "yoke/train/run_config.h"

namespace yoke::train {
namespace {

std::set<std::string> rows_of_the_page() {
  std::ifstream page(YOKE_SOURCE_FOLDER "/docs/configuration.md");
  std::set<std::string> rows;
  bool in_sections = false;  // the tables of keys stand under headings like "## `data`: ..."
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) in_sections = line.starts_with("## `");
    if (in_sections && line.starts_with("| `")) rows.insert(line);
  }
  return rows;
}

TEST(Documentation, EveryConfigurationKeyHasItsRow) {
  RunConfig config;
  ConfigTree tree;
  bind(tree, config);
  auto rows = rows_of_the_page();
  ASSERT_GT(tree.entries().size(), 40u);
  for (const auto& entry : tree.entries()) {
    const std::string row = "| `" + entry.key + "` | `" + entry.value + "` | " + entry.help + " |";
    EXPECT_EQ(rows.erase(row), 1u) << "docs/configuration.md lacks the row\n" << row;
  }
  for (const auto& row : rows)
    ADD_FAILURE() << "docs/configuration.md has a row that fits no key:\n" << row;
}

}  // namespace
}  // namespace yoke::train
