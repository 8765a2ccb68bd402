#pragma once

#include "yoke/cluster/machine_facts.h"

namespace yoke::cli {

/// Of this program and the libtorch that it has loaded.
cluster::MachineFacts::Build facts_of_build();

}  // namespace yoke::cli
