#include "yoke/tensor/fingerprint.h"

#include <torch/torch.h>
#include <torch/version.h>

#include <fstream>
#include <sstream>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"
#include "yoke/tensor/bridge.h"

namespace yoke::tensor {

namespace {

std::string cpu_field(const std::string& field) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with(field)) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

/// A convolution, a matrix product and a softmax over fixed numbers: what differs between
/// processors shows here.
std::string probe() {
  auto numbers = [](std::vector<std::int64_t> shape, double step) {
    auto tensor = torch::empty(shape);
    auto* data = tensor.data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      data[i] = static_cast<float>(((i * 37) % 101 - 50) * step);
    return tensor;
  };
  auto input = numbers({2, 3, 12, 12}, 0.013);
  auto kernel = numbers({8, 3, 3, 3}, 0.007).requires_grad_();
  auto weight = numbers({10, 8 * 10 * 10}, 0.003).requires_grad_();
  auto hidden = torch::gelu(torch::conv2d(input, kernel)).flatten(1);
  auto loss =
      torch::log_softmax(torch::nn::functional::linear(hidden, weight), 1).select(1, 3).mean();
  auto gradients = torch::autograd::grad({loss}, {kernel, weight});
  Sha256 sha;
  for (auto& gradient : gradients) sha.update(bytes_of(gradient.contiguous()));
  return sha.hex().substr(0, 16);
}

using Parts = std::map<std::string, std::string>;

Parts parse(const std::string& text) {
  Parts parts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos) parts[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return parts;
}

std::string compare(const Parts& one, const std::string& whose_one, const Parts& other,
                    const std::string& whose_other) {
  Parts names = one;
  names.insert(other.begin(), other.end());
  auto value = [](const Parts& parts, const std::string& name) {
    const auto found = parts.find(name);
    return found == parts.end() ? std::string("(none)") : found->second;
  };
  std::string found;
  for (const auto& [name, either] : names) {
    const std::string left = value(one, name), right = value(other, name);
    if (left == right) continue;
    found += cat(found.empty() ? "" : "; ", name, ": ", whose_one, " ", left, ", ", whose_other,
                 " ", right);
  }
  return found;
}

}  // namespace

std::string Fingerprint::text() const {
  std::string all;
  for (const auto& [name, value] : parts) all += cat(name, ": ", value, '\n');
  return all;
}

Fingerprint fingerprint(std::int64_t threads, const std::string& plan) {
  Fingerprint result;
  result.parts["build"] = cat("yoke ", YOKE_VERSION, ", g++ ", __VERSION__);
  result.parts["libtorch"] = cat(TORCH_VERSION, " ", at::get_cpu_capability());
  result.parts["processor"] = cpu_field("model name");
  const std::string flags = cpu_field("flags");
  result.parts["instructions"] = sha256_hex(std::as_bytes(std::span(flags))).substr(0, 16);
  result.parts["threads"] = std::to_string(threads);
  result.parts["plan"] = sha256_hex(std::as_bytes(std::span(plan))).substr(0, 16);
  result.parts["probe"] = probe();
  return result;
}

std::string differences(const Fingerprint& here, const std::string& there,
                        const std::string& whose) {
  return compare(here.parts, "here", parse(there), whose);
}

bool agree_on_fingerprint(const World& world, comm::Communicator& communicator,
                          const Fingerprint& mine, bool mixed) {
  const std::string text = mine.text();
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  auto key = [&](int rank) { return cat("fingerprint/", world.generation(), "/", rank); };
  world.store().set(key(world.rank()), text);
  const std::uint64_t digest = xxh3(text);
  std::vector<std::uint64_t> all(communicator.size());
  communicator.all_gather(std::as_bytes(std::span(&digest, 1)),
                          std::as_writable_bytes(std::span(all)));
  std::string found;
  bool one_plan = true;
  for (int rank = 1; rank < communicator.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    auto first = parse(world.store().get(key(0), deadline));
    auto theirs = parse(world.store().get(key(rank), deadline));
    one_plan = one_plan && first["plan"] == theirs["plan"];
    found += cat("rank 0 and rank ", rank, " would not compute the same bits: ",
                 compare(first, "on rank 0", theirs, cat("on rank ", rank)), ". ");
  }
  // Nobody leaves, and takes the store along, while others still read.
  communicator.barrier();
  if (found.empty()) return true;
  if (!one_plan) {
    throw JoinRefused(
        cat(found,
            "Give all ranks one plan: the same model, data, seed, batch, micro-batch, "
            "leaf, clipping and optimizer. Mixed workers need that too."));
  }
  if (!mixed) {
    throw JoinRefused(cat(found,
                          "Use equal machines and builds, or set train.mixed = true (DataParallel: "
                          ".mixed) and give up equal bits."));
  }
  if (world.rank() == 0)
    log_warning(found, "Mixed workers were asked for: the promise of equal bits is off.");
  return false;
}

}  // namespace yoke::tensor
