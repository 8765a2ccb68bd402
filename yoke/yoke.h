#pragma once

/// The one header of the library's users: docs/cpp.md.

#include "yoke/base/error.h"           // Error and its children
#include "yoke/base/exit_code.h"       // exit_code_of: what a program's main returns
#include "yoke/comm/communicator.h"    // comm::Communicator: collectives among ranks
#include "yoke/model/registry.h"       // model::Registry: models by name, and the user's own
#include "yoke/net/world.h"            // World: who takes part
#include "yoke/train/data_parallel.h"  // DataParallel: an ordinary loop, over many ranks
#include "yoke/train/run.h"            // train::run: what `yoke train` does
