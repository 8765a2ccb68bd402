#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace yoke {

/// Where one process stands among the ranks of a job, and how they find each other.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string launcher = "alone";  ///< "yoke", "torchrun", "mpirun", "srun" or "alone"
  std::string master_address = "127.0.0.1";
  /// 0 when alone. Under a foreign launcher this port may be taken by the launcher itself: the
  /// rendezvous uses the ports after it (net/rendezvous.h).
  std::uint16_t master_port = 0;
  /// Tells this job from others that use the same ports.
  std::string job = "alone";
  std::uint64_t generation = 0;
};

/// Reads the place from "NAME=value" entries, as environ holds them. The first of these that is
/// there counts:
///
///   RANK, WORLD_SIZE           yoke's launcher; torchrun if TORCHELASTIC_RUN_ID is set. With
///   MASTER_PORT, and
///                              MASTER_ADDR, LOCAL_RANK and LOCAL_WORLD_SIZE (a loopback master:
///                              all ranks are local). TORCHELASTIC_RESTART_COUNT is the generation.
///   OMPI_COMM_WORLD_RANK       mpirun of Open MPI, also inside a Slurm job, whose own variables
///   then
///                              describe the batch script and not the rank
///   SLURM_PROCID, SLURM_STEP_NUM_TASKS > 1   srun; the master is the first host of the step, and
///   the port
///                              follows from the job's and the step's numbers
///   PMI_RANK, PMI_SIZE         other mpirun programs; they need MASTER_ADDR and MASTER_PORT
///   none                       alone
///
/// MASTER_ADDR and MASTER_PORT win over what a launcher implies. Throws ConfigError for numbers
/// that cannot be right (a rank that is not below the size, half of the variables), naming the
/// variables.
Place place_from(const std::vector<std::string>& environment);

/// This process's environment in that form.
std::vector<std::string> process_environment();

/// Expands Slurm's host lists: "gnode[10,20-22],x1" -> gnode10 gnode20 gnode21 gnode22 x1. Leading
/// zeros count: "n[08-10]" -> n08 n09 n10. Throws ConfigError.
std::vector<std::string> expand_host_list(const std::string& list);

}  // namespace yoke
