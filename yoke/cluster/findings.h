#pragma once

#include <string>
#include <vector>

#include "yoke/cluster/machine_facts.h"

namespace yoke::cluster {

enum class Verdict {
  kPass,
  kWarn,  ///< training works, but slower, or not with many workers
  kFail,  ///< training does not work
};

std::string name_of(Verdict verdict);  ///< "pass"

/// One check: what was found, and what to do about it.
struct Finding {
  std::string check;
  Verdict verdict = Verdict::kPass;
  std::string found{};
  std::string advice{};  ///< empty: nothing
};

/// What the facts mean for training with yoke. Pure.
std::vector<Finding> findings_of(const MachineFacts& facts);

}  // namespace yoke::cluster
