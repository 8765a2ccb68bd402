// The work is really shared, and done once: by the files that a run leaves behind.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/train/training.h"
#include "yoke/comm/block_plan.h"

namespace yoke::test {
namespace {

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// Every (step, micro-batch) once, by the rank that holds its leaf; every position of the epochs
/// once.
void expect_exactly_once(const std::vector<nlohmann::json>& ledger, std::int64_t steps,
                         const std::function<int(std::int64_t)>& workers_at) {
  std::map<std::int64_t, std::map<std::int64_t, int>> ranks;
  std::int64_t next_position = 0;
  for (const auto& line : ledger) {
    const std::int64_t step = line.at("step");
    const bool is_new = ranks[step].emplace(line.at("micro_batch"), line.at("rank")).second;
    EXPECT_TRUE(is_new) << line;
    EXPECT_EQ(line.at("first"), next_position) << line;
    next_position = line.at("last").get<std::int64_t>() + 1;
  }
  ASSERT_EQ(static_cast<std::int64_t>(ranks.size()), steps);
  for (const auto& [step, of_step] : ranks) {
    const auto plan =
        comm::BlockPlan::even(static_cast<std::int64_t>(of_step.size()), workers_at(step));
    for (const auto& [micro_batch, rank] : of_step) {
      const auto [first, count] = plan.range_of(rank);
      EXPECT_TRUE(micro_batch >= first && micro_batch < first + count)
          << "step " << step << ", " << micro_batch;
    }
  }
}

TEST(Ledger, EachMicroBatchCountsOnceAlsoAfterAStopBetweenCheckpoints) {
  TemporaryFolder folder;
  const RunFolder run(folder.path() / "run");
  train::RunConfig config = digits();
  train_in(run.root(), config, {3}, 10);
  // Lines of steps that the checkpoint does not hold, as a killed sitting leaves them.
  std::ofstream(run.ledger(), std::ios::app)
      << R"({"step":10,"generation":0,"micro_batch":0,"rank":0,"first":0,"last":7})"
      << "\n{\"step\":10,\"gen";
  std::ofstream(run.metrics(), std::ios::app) << R"({"step":10,"loss":1})"
                                              << "\n";
  train_in(run.root(), config, {2, "tcp"});
  expect_exactly_once(lines_of(run.ledger()), 30,
                      [](std::int64_t step) { return step < 10 ? 3 : 2; });

  const auto metrics = lines_of(run.metrics());
  ASSERT_EQ(metrics.size(), 30U);
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    EXPECT_EQ(metrics[k].at("step"), k);
    EXPECT_EQ(metrics[k].at("world_size"), k < 10 ? 3 : 2);
    for (const char* part : {"data", "forward", "backward", "communicate", "optimize"}) {
      EXPECT_GE(metrics[k].at("ms").at(part).get<double>(), 0) << part;
    }
  }
  EXPECT_TRUE(metrics.back().contains("state_sha256"));
  const auto events = lines_of(run.events());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].at("recovery_source"), "checkpoint step 10");
}

TEST(Ledger, MoreWorkersThanLeavesLeaveSomeWithoutWork) {
  TemporaryFolder folder;
  const RunFolder run(folder.path() / "run");
  train::RunConfig config = digits();
  config.train.steps = 3;
  config.schedule = {};
  train_in(run.root(), config, {9});
  const auto ledger = lines_of(run.ledger());
  expect_exactly_once(ledger, 3, [](std::int64_t) { return 9; });
  std::set<int> busy;
  for (const auto& line : ledger) busy.insert(line.at("rank").get<int>());
  EXPECT_EQ(busy.size(), 7U);
}

TEST(Ledger, TrafficOverTcpFollowsTheClosedForm) {
  TemporaryFolder folder;
  const RunFolder run(folder.path() / "run");
  train::RunConfig config = digits();
  config.train.steps = 2;
  config.schedule = {};
  config.train.batch = 64;  // Eight leaves on four workers: one block of two leaves each.
  train_in(run.root(), config, {4, "tcp", "full_mesh"});
  const auto traffic = nlohmann::json::parse(read_file(run.traffic()));
  // 26,122-element mlp of hidden 48: three weights and three biases, each padded to whole units of
  // 1,024 elements.
  const std::int64_t elements =
      (64 * 48 + 1023) / 1024 * 1024 + 1024 + (48 * 48 + 1023) / 1024 * 1024 + 1024 + 1024 + 1024;
  std::int64_t sent = 0;
  for (const auto& line : traffic) {
    if (line.at("op") == "reduce_blocks") sent += line.at("payload_bytes").get<std::int64_t>();
  }
  // Full mesh, one block a rank: every rank sends its block but its own slice, and then its slice
  // to the other three.
  EXPECT_EQ(sent, 2 * 4 * (2 * 3 * elements / 4) * static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace
}  // namespace yoke::test
