#include "tests/sync/trial.h"

#include <torch/torch.h>

#include <algorithm>

#include "tests/support/spawn_ranks.h"
#include "tests/sync/canonical_sum.h"
#include "tests/sync/counting_communicator.h"
#include "yoke/optim/norm.h"
#include "yoke/sync/flat_state.h"
#include "yoke/sync/gradient_sync.h"
#include "yoke/tensor/bridge.h"

namespace yoke::test {

namespace {

constexpr std::int64_t kInputs = 6;
constexpr std::int64_t kWidth = 180;

torch::Tensor drawn(const std::vector<std::int64_t>& shape, RandomKey key) {
  auto tensor = torch::empty(shape);
  key.normal(std::span(tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())));
  return tensor;
}

struct Net : torch::nn::Module {
  explicit Net(std::uint64_t seed) {
    auto draw = [&](const char* name, std::vector<std::int64_t> shape, double scale) {
      return drawn(shape, RandomKey(seed).with(name)) * scale;
    };
    first = register_parameter("first", draw("first", {kWidth, kInputs}, 0.3));
    none = register_parameter("none", torch::empty({0}));
    twice = register_parameter("twice", draw("twice", {kWidth, kWidth}, 0.08));
    sometimes = register_parameter("sometimes", draw("sometimes", {kWidth}, 0.1));
    never = register_parameter("never", draw("never", {50}, 1.0));
    frozen = register_parameter("frozen", draw("frozen", {kWidth}, 1.0), false);
    last = register_parameter("last", draw("last", {1, kWidth}, 0.1));
    wide = register_parameter("wide", draw("wide", {3}, 1.0).to(torch::kDouble));
    mean = register_buffer("mean", draw("mean", {kWidth}, 1.0));
    wide_mean = register_buffer("wide_mean", draw("wide_mean", {1}, 1.0).to(torch::kDouble));
    strided = register_buffer("strided", draw("strided", {kInputs, 4}, 1.0).t());
    still = register_buffer(
        "still", torch::tensor({-0.0F, 0.0F, 1e-42F, std::numeric_limits<float>::quiet_NaN(),
                                static_cast<float>(seed)}));
    calls =
        register_buffer("calls", torch::full({}, static_cast<std::int64_t>(seed), torch::kLong));
  }

  torch::Tensor forward(const torch::Tensor& input, std::int64_t v) {
    auto hidden = torch::tanh(torch::linear(input, first)) + none.sum();
    {
      torch::NoGradGuard no_grad;
      mean.mul_(0.9).add_(hidden.mean(0), 0.1);
      wide_mean.mul_(0.9).add_(hidden.mean().to(torch::kDouble), 0.1);
      strided.mul_(0.9).add_(input.mean(0).unsqueeze(0), 0.1);
      calls += 1;
    }
    hidden = torch::tanh(torch::linear(hidden + mean.detach() * 0.01, twice));
    hidden = torch::tanh(torch::linear(hidden, twice)) * frozen;
    if (v % 3 == 1) hidden = hidden + sometimes;
    return torch::linear(hidden, last).to(torch::kDouble) * wide;
  }

  torch::Tensor first, none, twice, sometimes, never, frozen, last, wide;
  torch::Tensor mean, wide_mean, strided, still, calls;
};

std::int64_t samples_of(std::int64_t v, std::int64_t micro_batches) {
  return v + 1 == micro_batches ? 1 : 4;
}

torch::Tensor loss_of(Net& net, std::int64_t step, std::int64_t v, std::int64_t micro_batches) {
  const auto key =
      RandomKey(77).with(static_cast<std::uint64_t>(step)).with(static_cast<std::uint64_t>(v));
  const auto input = drawn({samples_of(v, micro_batches), kInputs}, key);
  return (net.forward(input, v) - 0.5).pow(2).mean();
}

std::vector<std::byte> copy_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  const auto bytes = tensor::bytes_of(whole);
  return {bytes.begin(), bytes.end()};
}

void keep(Bits& bits, const std::string& prefix, const tensor::NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    bits[prefix + name].assign(tensor.bytes.begin(), tensor.bytes.end());
}

void keep_number(Bits& bits, const std::string& name, double value) {
  bits[name] = copy_of(torch::tensor({value}, torch::kDouble));
}

optim::OptimizerOptions options_of(const std::string& name) {
  if (name == "sgd")
    return {.name = "sgd", .lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01};
  return {.name = name, .lr = 0.01, .weight_decay = 0.1};
}

Bits module_bits(Net& net) {
  Bits bits;
  for (const auto& item : net.named_parameters()) bits["module/" + item.key()] = copy_of(*item);
  for (const auto& item : net.named_buffers()) bits["module/" + item.key()] = copy_of(*item);
  return bits;
}

void compute_drawn(sync::GradientSync& gradients, std::int64_t step, std::int64_t micro_batches,
                   const World& world, const std::function<void(std::int64_t)>& compute) {
  gradients.begin_open_step(step, micro_batches);
  const std::int64_t leaves = gradients.leaves_of(micro_batches);
  int number = 0;
  for (std::int64_t leaf = 0; leaf < leaves; ++number) {
    const int level = leaf + 2 <= leaves ? 1 : 0;
    const std::int64_t next = leaf + (std::int64_t{1} << level);
    const bool mine = number % world.size() == world.rank() || next == leaves;
    const bool gives_up = number % world.size() == (world.rank() + 1) % world.size();
    if (mine || gives_up) {
      const auto block = gradients.begin_block(level, leaf >> level);
      for (std::size_t i = 0; i < block.size() && (mine || i < 1); ++i) compute(block[i]);
      mine ? gradients.keep_block() : gradients.drop_block();
    }
    leaf = next;
  }
}

TrialResult run_rank(const Trial& trial, const World& world) {
  CountingCommunicator communicator(
      comm::Communicator::create(world, {.transport = trial.transport}), trial.delays);
  Net net(1 + static_cast<std::uint64_t>(world.rank()));
  sync::GradientSync gradients(
      net, communicator,
      {.bucket_bytes = trial.bucket_bytes,
       .topology = trial.topology,
       .most_micro_batches = *std::ranges::max_element(trial.micro_batches),
       .leaf = trial.leaf,
       .most_blocks = trial.drawn ? 8 : 0});
  sync::FlatState state(gradients, communicator,
                        optim::Optimizer::make(options_of(trial.optimizer)));
  TrialResult result;
  result.state_is_shared = state.shared();
  FaultPlan faults;
  for (std::size_t k = 0; k < trial.micro_batches.size(); ++k) {
    const auto step = static_cast<std::int64_t>(k);
    const std::int64_t micro_batches = trial.micro_batches[k];
    const int before = communicator.started();
    const auto compute = [&](std::int64_t v) {
      gradients.begin_micro_batch(v);
      gradients.backward(loss_of(net, step, v, micro_batches), samples_of(v, micro_batches));
    };
    if (trial.drawn) {
      compute_drawn(gradients, step, micro_batches, world, compute);
    } else {
      gradients.begin_step(step, micro_batches);
      const auto mine = gradients.my_micro_batches();
      for (const std::int64_t v : mine) {
        if (v == mine.back()) result.sent_before_last.push_back(communicator.started() - before);
        compute(v);
      }
    }
    const auto outcome = gradients.finish({}, faults);
    result.sent.push_back(communicator.started() - before);
    if (step == 0) {
      for (std::size_t i = 0; i < gradients.tensors().trainable.size(); ++i) {
        const auto& entry = gradients.layout()[i];
        const std::byte* at = gradients.exchange().reduced() + entry.offset;
        if (gradients.present(i)) result.first["gradient/" + entry.name] = {at, at + entry.bytes()};
      }
      keep(result.first, "buffers/", gradients.buffers().named());
    }
    keep_number(result.state, "norm/" + std::to_string(step), outcome.norm);
    keep_number(result.state, "loss/" + std::to_string(step), outcome.loss);
    state.update(step, 0.01 / static_cast<double>(k + 1), optim::clip_scale(outcome.norm, 1.0),
                 faults);
  }
  keep(result.state, "parameters/", state.parameters());
  keep(result.state, "buffers/", gradients.buffers().named());
  keep(result.state, "optimizer/", state.optimizer());
  result.state.merge(module_bits(net));
  // What is shared may go only when nobody reads it any more.
  communicator.barrier();
  return result;
}

template <typename T>
std::vector<std::byte> weighted_mean(const std::vector<torch::Tensor>& terms, std::size_t leaf,
                                     double weight) {
  std::vector<Gradient<T>> gradients;
  for (const auto& term : terms) {
    const auto flat = term.defined() ? term.contiguous() : term;
    gradients.push_back(
        term.defined() ? Gradient<T>(std::vector<T>(flat.template data_ptr<T>(),
                                                    flat.template data_ptr<T>() + flat.numel()))
                       : Gradient<T>());
  }
  const auto sum = canonical_sum(gradients, leaf);
  if (!sum) return {};
  std::vector<T> mean = *sum;
  for (T& value : mean) value = value / static_cast<T>(weight);
  const auto bytes = std::as_bytes(std::span(mean));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> weighted_mean(const std::vector<torch::Tensor>& terms, std::size_t leaf,
                                     double weight, at::ScalarType dtype) {
  return dtype == torch::kDouble ? weighted_mean<double>(terms, leaf, weight)
                                 : weighted_mean<float>(terms, leaf, weight);
}

}  // namespace

std::vector<TrialResult> run(const Trial& trial) {
  at::set_num_threads(1);
  std::vector<TrialResult> results(static_cast<std::size_t>(trial.ranks));
  run_threads(trial.ranks, [&](World world) {
    results[static_cast<std::size_t>(world.rank())] = run_rank(trial, world);
  });
  return results;
}

Bits first_step_alone(const Trial& trial) {
  at::set_num_threads(1);
  const std::int64_t micro_batches = trial.micro_batches.front();
  std::map<std::string, std::vector<torch::Tensor>> terms;
  double weight = 0;
  for (std::int64_t v = 0; v < micro_batches; ++v) {
    Net net(1);
    const auto samples = samples_of(v, micro_batches);
    weight += static_cast<double>(samples);
    (loss_of(net, 0, v, micro_batches) * static_cast<double>(samples)).backward();
    for (const auto& item : net.named_parameters())
      terms["gradient/" + item.key()].push_back(item->grad());
    for (const auto& item : net.named_buffers())
      terms["buffers/" + item.key()].push_back(*item * static_cast<double>(samples));
  }
  Net net(1);
  Bits bits;
  for (const auto& item : net.named_parameters()) {
    const std::string name = "gradient/" + item.key();
    auto mean = weighted_mean(terms[name], static_cast<std::size_t>(trial.leaf), weight,
                              item->scalar_type());
    if (item->requires_grad() && item.key() != "never") bits[name] = std::move(mean);
  }
  for (const auto& item : net.named_buffers()) {
    const std::string name = "buffers/" + item.key();
    if (item.key() == "still") {
      bits[name] = copy_of(*item);
    } else if (item.key() == "calls") {
      bits[name] = copy_of(*item + 1);
    } else {
      bits[name] = weighted_mean(terms[name], static_cast<std::size_t>(trial.leaf), weight,
                                 item->scalar_type());
    }
  }
  return bits;
}

Bits initial_state() {
  Net net(1);
  return module_bits(net);
}

}  // namespace yoke::test
