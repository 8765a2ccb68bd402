#include "yoke/cli/ckpt.h"

namespace yoke::cli {

void add_ckpt(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("ckpt", "Look at checkpoints, check and convert them");
  command->require_subcommand(1);
  add_ckpt_ls(*command, invocation);
  add_ckpt_verify(*command, invocation);
  add_ckpt_diff(*command, invocation);
  add_ckpt_convert(*command, invocation);
  command->footer(
      R"(Examples:
  yoke ckpt ls digits                                  which there are, and why they are kept
  yoke ckpt verify digits                              read every byte; ends with 74 if one is damaged
  yoke ckpt diff digits 200 300                        which tensors differ, and by how much
  yoke ckpt convert digits digits.safetensors          weights and buffers, for Python and others
  yoke ckpt convert weights.pt weights.safetensors     what torch.save(model.state_dict(), path) wrote)");
}

}  // namespace yoke::cli
