// yoke ckpt ls, yoke ckpt verify

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/checkpoint/listing.h"
#include "yoke/checkpoint/recovery.h"
#include "yoke/cli/ckpt.h"
#include "yoke/cli/configuration.h"
#include "yoke/cli/existing_run.h"
#include "yoke/cli/numbers.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {
namespace {

struct ListOptions {
  std::string run;
  std::optional<std::int64_t> step;
  bool json = false;
};

checkpoint::Retention retention_of(const RunFolder& folder) {
  checkpoint::Retention retention;
  // The typed values would bring libtorch's headers along.
  const auto configuration = Configuration::recorded(folder.config());
  for (const auto& entry : configuration.tree().entries()) {
    if (entry.key == "train.keep_last") retention.keep_last = std::stoll(entry.value);
    if (entry.key == "train.keep_every") retention.keep_every = std::stoll(entry.value);
    if (entry.key == "train.keep_best") retention.keep_best = std::stoll(entry.value);
  }
  return retention;
}

nlohmann::json json_of(const checkpoint::Listed& one) {
  nlohmann::json json{
      {"step", one.step}, {"intact", one.damage.empty()}, {"damage", nullptr}, {"kept", one.kept}};
  if (!one.damage.empty()) json["damage"] = one.damage;
  if (one.contents) {
    json["time"] = one.contents->time;
    json["bytes"] = one.contents->bytes();
    json["files"] = one.contents->files.size();
    json["generation"] = one.contents->generation;
    json["world_size"] = one.contents->world_size;
    json["evaluation_loss"] = nullptr;
    if (one.contents->evaluation_loss) json["evaluation_loss"] = *one.contents->evaluation_loss;
  }
  return json;
}

std::string words_of(const checkpoint::Listed& one) {
  std::string words;
  for (const auto& reason : one.kept) words += (words.empty() ? "" : ", ") + reason;
  return words.empty() ? "goes at the next save" : words;
}

void print_listed(const checkpoint::Listed& one) {
  char line[200];
  if (!one.contents) {
    std::cout << one.step << "  damaged: " << one.damage << '\n';
    return;
  }
  char loss[32] = "-";
  if (one.contents->evaluation_loss)
    std::snprintf(loss, sizeof loss, "%.6g", *one.contents->evaluation_loss);
  std::snprintf(line, sizeof line, "%10lld  %-24s  %14llu  %10llu  %12s  ",
                static_cast<long long>(one.step), one.contents->time.c_str(),
                static_cast<unsigned long long>(one.contents->bytes()),
                static_cast<unsigned long long>(one.contents->generation), loss);
  std::cout << line << words_of(one) << '\n';
}

void print_list(const ListOptions& options) {
  const auto folder = existing_run(options.run);
  const auto all = checkpoint::list(folder, retention_of(folder), checkpoint::Verify::kWhatIsRead);
  const auto aside = checkpoint::set_aside_folders(folder);
  if (options.json) {
    for (const auto& one : all) std::cout << json_text(json_of(one)) << '\n';
    return;
  }
  if (all.empty()) std::cout << folder.root().string() << " has no checkpoint yet.\n";
  if (!all.empty())
    std::cout << "      step  time                               bytes  generation     eval. loss"
                 "  kept as\n";
  for (const auto& one : all) print_listed(one);
  for (const auto& path : aside) std::cout << "set aside as damaged: " << path.string() << '\n';
}

int verify(const ListOptions& options) {
  const auto folder = existing_run(options.run);
  auto all = checkpoint::list(folder, retention_of(folder), checkpoint::Verify::kAll);
  if (options.step) {
    std::erase_if(all, [&](const auto& one) { return one.step != *options.step; });
    if (all.empty()) {
      throw CheckpointError(cat(folder.root().string(), " has no checkpoint of step ",
                                *options.step, ". yoke ckpt ls ", options.run,
                                " shows which there are."));
    }
  }
  int code = kExitOk;
  for (const auto& one : all) {
    if (!one.damage.empty()) code = kExitIo;
    if (options.json) {
      std::cout << json_text(json_of(one)) << '\n';
    } else if (one.damage.empty()) {
      std::cout << "step " << one.step << ": intact, " << one.contents->bytes() << " bytes in "
                << one.contents->files.size() << " files\n";
    } else {
      std::cout << "step " << one.step << ": damaged. " << one.damage << '\n';
    }
  }
  if (all.empty()) std::cerr << folder.root().string() << " has no checkpoint yet.\n";
  return code;
}

}  // namespace

void add_ckpt_ls(CLI::App& ckpt, Invocation& invocation) {
  auto options = std::make_shared<ListOptions>();
  auto* command = ckpt.add_subcommand("ls", "The checkpoints of a run, and why they are kept");
  command->add_option("RUN", options->run, "Name under runs/, or a path")->required();
  command->add_flag("--json", options->json, "Print one JSON object a line");
  command->footer(
      R"(Looks at manifests and sizes; yoke ckpt verify reads everything.

Examples:
  yoke ckpt ls digits
  yoke ckpt ls runs/digits --json)");
  command->callback([options, &invocation] {
    print_list(*options);
    invocation.exit_code = kExitOk;
  });
}

void add_ckpt_verify(CLI::App& ckpt, Invocation& invocation) {
  auto options = std::make_shared<ListOptions>();
  auto* command =
      ckpt.add_subcommand("verify", "Read checkpoints in full and compare with their checksums");
  command->add_option("RUN", options->run, "Name under runs/, or a path")->required();
  command->add_option("--step", options->step, "The checkpoint of that step (default: all)")
      ->check(whole_number(0));
  command->add_flag("--json", options->json, "Print one JSON object a line");
  command->footer(
      R"(Changes nothing. Ends with 74 if one is damaged, and names the file.

Examples:
  yoke ckpt verify digits
  yoke ckpt verify digits --step 300 --json)");
  command->callback([options, &invocation] { invocation.exit_code = verify(*options); });
}

}  // namespace yoke::cli
