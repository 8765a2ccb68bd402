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
  /// 0 when alone. Under a foreign launcher this port may be taken by the launcher itself: the rendezvous
  /// uses the ports after it (net/rendezvous.h).
  std::uint16_t master_port = 0;
  /// Tells this job from others that use the same ports.
  std::string job = "alone";
  std::uint64_t generation = 0;
};

/// Reads the place from "NAME=value" entries, as environ holds them. In this order: RANK and WORLD_SIZE
/// (yoke's launcher, torchrun), SLURM_PROCID (srun with more than one task), OMPI_COMM_WORLD_RANK or
/// PMIX_RANK, PMI_RANK (mpirun), alone. Throws ConfigError for numbers that cannot be right (a rank that is
/// not below the size, half of the variables), naming the variables.
Place place_from(const std::vector<std::string>& environment);

/// This process's environment in that form.
std::vector<std::string> process_environment();

/// Expands Slurm's host lists: "gnode[10,20-22],x1" -> gnode10 gnode20 gnode21 gnode22 x1.
std::vector<std::string> expand_host_list(const std::string& list);

}  // namespace yoke
