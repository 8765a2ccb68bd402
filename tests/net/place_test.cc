#include "yoke/net/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"

namespace yoke {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string error_of(const std::vector<std::string>& environment) {
  try {
    place_from(environment);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Place, AloneWithoutAnyVariable) {
  auto place = place_from({"HOME=/root", "PATH=/bin"});
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.size, 1);
  EXPECT_EQ(place.launcher, "alone");
}

TEST(Place, Torchrun) {
  auto place = place_from({"RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
                           "MASTER_ADDR=node3", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=abc",
                           "TORCHELASTIC_RESTART_COUNT=2"});
  EXPECT_EQ(place.launcher, "torchrun");
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.size, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 4);
  EXPECT_EQ(place.master_address, "node3");
  EXPECT_EQ(place.master_port, 29500);
  EXPECT_EQ(place.generation, 2u);
  EXPECT_THAT(place.job, HasSubstr("abc"));
}

TEST(Place, LoopbackMasterMeansThatAllRanksAreLocal) {
  auto place = place_from({"RANK=1", "WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=4000"});
  EXPECT_EQ(place.launcher, "yoke");
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 4);
}

TEST(Place, MpirunOnOneHost) {
  std::vector<std::string> environment{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
                                       "OMPI_COMM_WORLD_LOCAL_RANK=1",
                                       "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1234"};
  auto place = place_from(environment);
  EXPECT_EQ(place.launcher, "mpirun");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.master_address, "127.0.0.1");
  EXPECT_GE(place.master_port, 20000);
  EXPECT_LT(place.master_port, 32768 - 32);
  environment.back() = "PMIX_NAMESPACE=1235";
  EXPECT_NE(place_from(environment).job, place.job);
}

TEST(Place, MpirunInsideASlurmJobIsNotTheBatchScript) {
  auto place = place_from({"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NUM_TASKS=2",
                           "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
                           "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                           "OMPI_MCA_orte_hnp_uri=77.0;tcp://10.0.0.1:3"});
  EXPECT_EQ(place.launcher, "mpirun");
  EXPECT_EQ(place.rank, 1);
}

TEST(Place, MpirunOnSeveralHostsNeedsTheMaster) {
  std::vector<std::string> environment{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4",
                                       "OMPI_COMM_WORLD_LOCAL_RANK=1",
                                       "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1234"};
  EXPECT_THAT(error_of(environment), HasSubstr("MASTER_ADDR"));
  environment.push_back("MASTER_ADDR=node1");
  auto place = place_from(environment);
  EXPECT_EQ(place.master_address, "node1");
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 2);
}

TEST(Place, Srun) {
  std::vector<std::string> environment{"SLURM_PROCID=4",    "SLURM_LOCALID=1",
                                       "SLURM_NODEID=2",    "SLURM_STEP_NUM_TASKS=7",
                                       "SLURM_JOB_ID=4711", "SLURM_STEP_TASKS_PER_NODE=1,2(x3)",
                                       "SLURM_STEP_ID=0",   "SLURM_JOB_NODELIST=gnode[08-11]"};
  auto place = place_from(environment);
  EXPECT_EQ(place.launcher, "srun");
  EXPECT_EQ(place.rank, 4);
  EXPECT_EQ(place.size, 7);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.master_address, "gnode08");
  environment[6] = "SLURM_STEP_ID=1";
  auto other_step = place_from(environment);
  EXPECT_NE(other_step.job, place.job);
  EXPECT_NE(other_step.master_port, place.master_port);
}

TEST(Place, ABatchScriptIsAlone) {
  EXPECT_EQ(place_from({"SLURM_PROCID=0", "SLURM_NTASKS=4"}).size, 1);
}

TEST(Place, OtherMpirunsNeedMasterAndPort) {
  EXPECT_THAT(error_of({"PMI_RANK=0", "PMI_SIZE=2"}),
              AllOf(HasSubstr("MASTER_ADDR"), HasSubstr("MASTER_PORT")));
  auto place = place_from({"PMI_RANK=1", "PMI_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=5000"});
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.master_address, "a");
}

TEST(Place, ErrorsNameTheVariables) {
  EXPECT_THAT(error_of({"RANK=1"}), AllOf(HasSubstr("RANK"), HasSubstr("WORLD_SIZE")));
  EXPECT_THAT(error_of({"WORLD_SIZE=2"}), AllOf(HasSubstr("RANK"), HasSubstr("WORLD_SIZE")));
  EXPECT_THAT(error_of({"RANK=2", "WORLD_SIZE=2", "MASTER_PORT=1"}), HasSubstr("RANK=2"));
  EXPECT_THAT(error_of({"RANK=x", "WORLD_SIZE=2"}), HasSubstr("RANK=x"));
  EXPECT_THAT(error_of({"RANK=-1", "WORLD_SIZE=2"}), HasSubstr("RANK=-1"));
  EXPECT_THAT(error_of({"RANK=0", "WORLD_SIZE=0"}), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(error_of({"RANK=0", "WORLD_SIZE=2"}), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(error_of({"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=70000"}),
              HasSubstr("MASTER_PORT=70000"));
  EXPECT_THAT(error_of({"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1", "LOCAL_RANK=0"}),
              HasSubstr("LOCAL_WORLD_SIZE"));
  EXPECT_THAT(
      error_of({"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=3"}),
      HasSubstr("LOCAL_WORLD_SIZE=3"));
  EXPECT_THAT(error_of({"OMPI_COMM_WORLD_RANK=0"}), HasSubstr("OMPI_COMM_WORLD_SIZE"));
  EXPECT_THAT(error_of({"PMIX_RANK=0"}), HasSubstr("PMIX_RANK"));
  EXPECT_THAT(error_of({"SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_NODELIST=a"}),
              HasSubstr("SLURM_PROCID"));
}

TEST(Place, ASlurmStepOnOneNodeNeedsNoNameOfIt) {
  auto place = place_from({"SLURM_PROCID=1", "SLURM_LOCALID=1", "SLURM_NODEID=0",
                           "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_TASKS_PER_NODE=2",
                           "SLURM_STEP_NODELIST=not-a-name-that-resolves", "SLURM_JOB_ID=1"});
  EXPECT_EQ(place.master_address, "127.0.0.1");
  EXPECT_EQ(place.local_size, 2);
}

TEST(HostList, ExpandsWhatSlurmWrites) {
  EXPECT_THAT(expand_host_list("gnode[10,20-22],x1"),
              ElementsAre("gnode10", "gnode20", "gnode21", "gnode22", "x1"));
  EXPECT_THAT(expand_host_list("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(expand_host_list("r[1-2]n[1,3]-ib"),
              ElementsAre("r1n1-ib", "r1n3-ib", "r2n1-ib", "r2n3-ib"));
  EXPECT_THAT(expand_host_list("alone"), ElementsAre("alone"));
  EXPECT_THAT(expand_host_list("n[1-1000]"), SizeIs(1000));
}

TEST(HostList, RefusesWhatIsNone) {
  for (const char* list : {"n[1-", "n[", "n[]", "n[3-1]", "a,,b", "n[1-2", "n[a]", "n[1-99999999]",
                           "n[1-1000]x[1-1000]y[1-1000]"}) {
    EXPECT_THROW(expand_host_list(list), ConfigError) << list;
  }
}

}  // namespace
}  // namespace yoke
