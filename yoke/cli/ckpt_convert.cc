// yoke ckpt convert

#include <filesystem>
#include <iostream>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/checkpoint/safetensors.h"
#include "yoke/checkpoint/weights.h"
#include "yoke/cli/ckpt.h"
#include "yoke/cli/existing_run.h"
#include "yoke/cli/numbers.h"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::string from, to;
  std::optional<std::int64_t> step;
  bool force = false;
};

/// Parameters and buffers under their bare names, as a state_dict has them.
tensor::NamedTensors state_dict_of(const checkpoint::Snapshot& snapshot) {
  tensor::NamedTensors all = snapshot.parameters;
  for (const auto& [name, tensor] : snapshot.buffers) {
    if (!all.emplace(name, tensor).second) {
      throw CheckpointError(cat("a parameter and a buffer are both called ", name,
                                "; a file of weights can hold only one of them."));
    }
  }
  return all;
}

std::string convert_run(const ConvertOptions& options) {
  const auto folder = existing_run(options.from);
  const std::int64_t step = options.step ? *options.step : checkpoint::newest_intact(folder);
  if (step < 0)
    throw CheckpointError(cat(folder.root().string(), " has no checkpoint yet. Train it first."));
  const checkpoint::Reader reader(folder, step);
  const auto& snapshot = reader.snapshot();
  const auto tensors = state_dict_of(snapshot);
  checkpoint::write_safetensors(options.to, tensors,
                                {{"format", "pt"},
                                 {"step", std::to_string(step)},
                                 {"state_sha256", hashes_of(snapshot).state_sha256},
                                 {"run_id", reader.contents().run_id}});
  return cat(tensors.size(), " tensors of step ", step);
}

std::string convert_file(const ConvertOptions& options) {
  if (options.step) throw UsageError(cat(options.from, " is a file; --step belongs to a run."));
  const auto weights = checkpoint::load_weights(options.from);
  checkpoint::write_safetensors(options.to, weights.tensors(), weights.metadata);
  return cat(weights.tensors().size(), " tensors");
}

void convert(const ConvertOptions& options) {
  if (!options.to.ends_with(".safetensors"))
    throw UsageError(cat(options.to, " must end in .safetensors, the one format that is written."));
  std::error_code error;
  if (!options.force && fs::exists(options.to, error))
    throw UsageError(cat(options.to, " exists already. --force replaces it."));
  const bool is_file = fs::is_regular_file(options.from, error);
  const std::string what = is_file ? convert_file(options) : convert_run(options);
  std::cout << options.to << ": " << what << '\n';
}

}  // namespace

void add_ckpt_convert(CLI::App& ckpt, Invocation& invocation) {
  auto options = std::make_shared<ConvertOptions>();
  auto* command = ckpt.add_subcommand(
      "convert", "Write the weights of a run, or of a file of PyTorch's, as safetensors");
  command->add_option("FROM", options->from, "A run, a .pt file, or a .safetensors file")
      ->required();
  command->add_option("TO", options->to, "The file to write, ending in .safetensors")->required();
  command->add_option("--step", options->step, "The checkpoint of that step (default: the newest)")
      ->check(whole_number(0));
  command->add_flag("--force", options->force, "Replace TO if it exists");
  command->footer(
      R"(Parameters and buffers, under the names that the model's state_dict has; the optimizer stays behind. A .pt file is what
torch.save(model.state_dict(), path) wrote in Python; nothing in it is run.

Examples:
  yoke ckpt convert digits digits.safetensors --step 300
  yoke ckpt convert weights.pt weights.safetensors)");
  command->callback([options, &invocation] {
    convert(*options);
    invocation.exit_code = kExitOk;
  });
}

}  // namespace yoke::cli
