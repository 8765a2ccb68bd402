#pragma once

#include <CLI/CLI.hpp>

#include "yoke/cli/commands.h"

namespace yoke::cli {

/// The commands below `yoke ckpt`.
void add_ckpt_ls(CLI::App& ckpt, Invocation& invocation);
void add_ckpt_verify(CLI::App& ckpt, Invocation& invocation);
void add_ckpt_diff(CLI::App& ckpt, Invocation& invocation);
void add_ckpt_convert(CLI::App& ckpt, Invocation& invocation);

}  // namespace yoke::cli
