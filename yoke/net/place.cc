#include "yoke/net/place.h"

#include <unistd.h>

#include <charconv>
#include <initializer_list>
#include <map>
#include <optional>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke {
namespace {

constexpr std::uint16_t kFirstDerivedPort = 20000;
constexpr std::uint16_t kDerivedPorts = 12000;  // ends below 32768, where ports of clients begin

class Variables {
 public:
  explicit Variables(const std::vector<std::string>& environment) {
    for (const auto& entry : environment) {
      if (auto equals = entry.find('='); equals != std::string::npos) {
        values_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
      }
    }
  }

  bool has(const std::string& name) const { return values_.contains(name); }

  std::optional<std::string> text(const std::string& name) const {
    auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<std::int64_t> number(const std::string& name, std::int64_t least,
                                     std::int64_t most) const {
    auto value = text(name);
    if (!value) {
      return std::nullopt;
    }
    std::int64_t number = 0;
    auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error != std::errc() || end != value->data() + value->size() || number < least ||
        number > most) {
      throw ConfigError(cat(name, "=", *value, " is not a whole number from ", least, " to ", most,
                            ". Correct it, or unset it."));
    }
    return number;
  }

  int require(const std::string& name, std::int64_t least, const std::string& because_of) const {
    auto value = number(name, least, 1 << 24);
    if (!value) {
      throw ConfigError(cat(because_of, " is set, but ", name,
                            " is not. A launcher sets both; unset ", because_of, " to run alone."));
    }
    return static_cast<int>(*value);
  }

 private:
  std::map<std::string, std::string> values_;
};

void check_below(const std::string& rank_name, int rank, const std::string& size_name, int size) {
  if (rank >= size) {
    throw ConfigError(cat(rank_name, "=", rank, " is not below ", size_name, "=", size,
                          ": ranks count from 0. Check the launcher's settings."));
  }
}

bool is_loopback_name(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::uint16_t derived_port(std::uint64_t number) {
  return static_cast<std::uint16_t>(kFirstDerivedPort + number % kDerivedPorts);
}

/// LOCAL_RANK and its like: both or neither.
void read_local(const Variables& variables, const std::string& rank_name,
                const std::string& size_name, Place& place) {
  if (variables.has(rank_name) || variables.has(size_name)) {
    place.local_rank = variables.require(rank_name, 0, size_name);
    place.local_size = variables.require(size_name, 1, rank_name);
    check_below(rank_name, place.local_rank, size_name, place.local_size);
    if (place.local_size > place.size) {
      throw ConfigError(cat(size_name, "=", place.local_size, " is more than all ", place.size,
                            " ranks. Check the launcher's settings."));
    }
  } else if (is_loopback_name(place.master_address)) {
    place.local_rank = place.rank;
    place.local_size = place.size;
  }
}

void read_master(const Variables& variables, Place& place) {
  place.master_address = variables.text("MASTER_ADDR").value_or(place.master_address);
  if (place.master_address.empty()) {
    throw ConfigError("MASTER_ADDR is empty: give the name or address of the host of rank 0.");
  }
  if (auto port = variables.number("MASTER_PORT", 1, 65535)) {
    place.master_port = static_cast<std::uint16_t>(*port);
  }
}

Place place_of_torchrun(const Variables& variables) {
  Place place;
  place.rank = variables.require("RANK", 0, "WORLD_SIZE");
  place.size = variables.require("WORLD_SIZE", 1, "RANK");
  check_below("RANK", place.rank, "WORLD_SIZE", place.size);
  read_master(variables, place);
  if (place.master_port == 0 && place.size > 1) {
    throw ConfigError("RANK and WORLD_SIZE are set, but MASTER_PORT is not: give a port of " +
                      place.master_address + " that is free on it and the 32 after it.");
  }
  read_local(variables, "LOCAL_RANK", "LOCAL_WORLD_SIZE", place);
  auto run = variables.text("TORCHELASTIC_RUN_ID");
  place.launcher = run ? "torchrun" : "yoke";
  place.generation = static_cast<std::uint64_t>(
      variables.number("TORCHELASTIC_RESTART_COUNT", 0, std::int64_t{1} << 40).value_or(0));
  place.job = cat(place.launcher, " ", run.value_or(""), " at port ", place.master_port);
  return place;
}

Place place_of_open_mpi(const Variables& variables) {
  Place place;
  place.launcher = "mpirun";
  place.rank = variables.require("OMPI_COMM_WORLD_RANK", 0, "OMPI_COMM_WORLD_SIZE");
  place.size = variables.require("OMPI_COMM_WORLD_SIZE", 1, "OMPI_COMM_WORLD_RANK");
  check_below("OMPI_COMM_WORLD_RANK", place.rank, "OMPI_COMM_WORLD_SIZE", place.size);
  place.local_size = 0;
  place.master_address.clear();
  read_local(variables, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", place);
  if (variables.has("MASTER_ADDR")) {
    read_master(variables, place);
  } else if (place.local_size == place.size) {
    place.master_address = "127.0.0.1";
  } else {
    throw ConfigError(
        "mpirun has started ranks on several hosts and does not say which is that of rank 0. Set "
        "MASTER_ADDR to it: mpirun -x MASTER_ADDR=HOST ...");
  }
  place.local_size = std::max(place.local_size, 1);
  // Both name this one call of mpirun; which of them there is depends on the version.
  auto name = variables.text("PMIX_NAMESPACE").value_or("");
  if (name.empty()) {
    name = variables.text("OMPI_MCA_orte_hnp_uri").value_or("");
  }
  if (auto port = variables.number("MASTER_PORT", 1, 65535)) {
    place.master_port = static_cast<std::uint16_t>(*port);
  } else if (name.empty() && place.size > 1) {
    throw ConfigError(
        "this mpirun sets neither PMIX_NAMESPACE nor OMPI_MCA_orte_hnp_uri, so yoke cannot derive "
        "a "
        "port. Set one: mpirun -x MASTER_PORT=29500 ...");
  } else {
    place.master_port = derived_port(xxh3(name));
  }
  place.job = cat("mpirun ", name, " at port ", place.master_port);
  return place;
}

/// "2(x3),1": tasks on each node of a step.
int tasks_on_node(const std::string& tasks_per_node, int node) {
  std::size_t at = 0;
  auto digits = [&] {
    int number = 0;
    auto [end, error] = std::from_chars(tasks_per_node.data() + at,
                                        tasks_per_node.data() + tasks_per_node.size(), number);
    if (error != std::errc() || number < 1) {
      throw ConfigError(cat("SLURM_STEP_TASKS_PER_NODE=", tasks_per_node,
                            " is not like 2(x3),1. Set LOCAL_RANK and the like yourself."));
    }
    at = static_cast<std::size_t>(end - tasks_per_node.data());
    return number;
  };
  while (at < tasks_per_node.size()) {
    int tasks = digits();
    int nodes = 1;
    if (tasks_per_node.compare(at, 2, "(x") == 0) {
      at += 2;
      nodes = digits();
      ++at;
    }
    if (node < nodes) {
      return tasks;
    }
    node -= nodes;
    ++at;
  }
  throw ConfigError(cat("SLURM_STEP_TASKS_PER_NODE=", tasks_per_node,
                        " has no entry for SLURM_NODEID. Check how srun was called."));
}

Place place_of_slurm(const Variables& variables) {
  Place place;
  place.launcher = "srun";
  place.rank = variables.require("SLURM_PROCID", 0, "SLURM_STEP_NUM_TASKS");
  place.size = variables.require("SLURM_STEP_NUM_TASKS", 1, "SLURM_PROCID");
  check_below("SLURM_PROCID", place.rank, "SLURM_STEP_NUM_TASKS", place.size);
  place.local_rank = variables.require("SLURM_LOCALID", 0, "SLURM_PROCID");
  if (auto tasks = variables.text("SLURM_STEP_TASKS_PER_NODE")) {
    place.local_size = tasks_on_node(*tasks, variables.require("SLURM_NODEID", 0, "SLURM_PROCID"));
    check_below("SLURM_LOCALID", place.local_rank, "the tasks of this node", place.local_size);
  } else {
    place.local_size = place.local_rank + 1;
  }
  auto hosts = variables.text("SLURM_STEP_NODELIST");
  hosts = hosts ? hosts : variables.text("SLURM_JOB_NODELIST");
  if (!hosts && !variables.has("MASTER_ADDR")) {
    throw ConfigError(
        "SLURM_PROCID is set, but neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST. Set "
        "MASTER_ADDR "
        "to the host of rank 0.");
  }
  if (place.local_size == place.size) {
    place.master_address = "127.0.0.1";  // the node's name need not resolve where it is alone
  } else if (hosts) {
    auto names = expand_host_list(*hosts);
    place.master_address = names.empty() ? std::string() : names.front();
  }
  auto job = variables.number("SLURM_JOB_ID", 0, std::int64_t{1} << 40).value_or(0);
  auto step = variables.number("SLURM_STEP_ID", 0, std::int64_t{1} << 40).value_or(0);
  // Neighbouring jobs and steps lie further apart than the ports that a rendezvous looks at.
  place.master_port =
      derived_port(static_cast<std::uint64_t>(job) * 613 + static_cast<std::uint64_t>(step) * 37);
  read_master(variables, place);
  place.job = cat("srun ", job, ".", step);
  return place;
}

Place place_of_pmi(const Variables& variables) {
  Place place;
  place.launcher = "mpirun";
  place.rank = variables.require("PMI_RANK", 0, "PMI_SIZE");
  place.size = variables.require("PMI_SIZE", 1, "PMI_RANK");
  check_below("PMI_RANK", place.rank, "PMI_SIZE", place.size);
  if (place.size > 1 && !(variables.has("MASTER_ADDR") && variables.has("MASTER_PORT"))) {
    throw ConfigError(
        "PMI_RANK is set, but MASTER_ADDR and MASTER_PORT are not, and this launcher does not "
        "imply "
        "them: mpirun -genv MASTER_ADDR HOST -genv MASTER_PORT 29500 ...");
  }
  read_master(variables, place);
  read_local(variables, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", place);
  place.job =
      cat("mpirun ", variables.text("PMI_JOBID").value_or(""), " at port ", place.master_port);
  return place;
}

}  // namespace

Place place_from(const std::vector<std::string>& environment) {
  Variables variables(environment);
  if (variables.has("RANK") || variables.has("WORLD_SIZE")) {
    return place_of_torchrun(variables);
  }
  if (variables.has("OMPI_COMM_WORLD_RANK") || variables.has("OMPI_COMM_WORLD_SIZE")) {
    return place_of_open_mpi(variables);
  }
  // A batch script has SLURM_PROCID too, but it is one process, not a step.
  if (variables.number("SLURM_STEP_NUM_TASKS", 1, 1 << 24).value_or(1) > 1) {
    return place_of_slurm(variables);
  }
  if (variables.has("PMI_RANK") || variables.has("PMI_SIZE")) {
    return place_of_pmi(variables);
  }
  if (variables.has("PMIX_RANK")) {
    throw ConfigError(
        "PMIX_RANK is set, but no variable says how many ranks there are. Set RANK, WORLD_SIZE, "
        "MASTER_ADDR and MASTER_PORT for each rank, or unset PMIX_RANK to run alone.");
  }
  return {};
}

std::vector<std::string> process_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

}  // namespace yoke
