#include "yoke/comm/group_communicator.h"

#include <exception>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/comm/kernels.h"

namespace yoke::comm {

GroupCommunicator::GroupCommunicator(World world, const CommunicatorOptions& options,
                                     TransportKind transport, std::unique_ptr<Backend> backend)
    : world_(std::move(world)),
      options_(options),
      transport_(transport),
      backend_(std::move(backend)),
      exceptions_(std::uncaught_exceptions()),
      sent_(world_.size()),
      received_(world_.size()),
      queue_(*this) {}

GroupCommunicator::~GroupCommunicator() {
  // Peers in a call learn at once that this rank will not come, and started calls end.
  if (std::uncaught_exceptions() > exceptions_ && !spent_)
    abort("it is unwinding from another error");
}

template <typename Body>
void GroupCommunicator::run(const Shape& shape, std::uint64_t& sequence, const Body& body) {
  queue_.drain();
  refuse_if_spent();
  const Topology asked = shape.asked == Topology::kAuto ? options_.topology : shape.asked;
  const std::size_t bytes = shape.count * size_of(shape.dtype);
  Call call{.tag = {.sequence = sequence++,
                    .operation = static_cast<std::uint8_t>(shape.operation),
                    .reduce = static_cast<std::uint8_t>(shape.op),
                    .dtype = shape.dtype,
                    .topology = 0,
                    .root = shape.root,
                    .count = shape.count},
            .topology = backend_->choose(shape.operation, asked, bytes),
            .deadline = Deadline::after(shape.timeout.value_or(options_.timeout))};
  call.tag.topology = static_cast<std::uint8_t>(call.topology);
  const net::TransportCounters before = backend_->counters();
  try {
    body(call);
  } catch (const ConfigError&) {
    throw;
  } catch (const CommunicationError& error) {
    spend(net::Failure::of(error));
    throw;
  } catch (const std::exception& error) {
    // The others wait for this rank, which cannot go on.
    abort(cat(name_of(shape.operation), " failed there: ", error.what()));
    throw;
  }
  traffic_.add(shape.operation, call.topology, before, backend_->counters());
}

void GroupCommunicator::refuse_if_spent() {
  if (!spent_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  failure_->raise();
}

void GroupCommunicator::spend(const net::Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure;
  spent_.store(true, std::memory_order_release);
}

void GroupCommunicator::abort(const std::string& reason) {
  const std::string message =
      cat("rank ", rank(), " of \"", options_.name, "\", generation ", generation(),
          ", ended its calls: ", reason, ". Make a new communicator to go on.");
  spend({.kind = net::Failure::Kind::kAborted, .generation = generation(), .message = message});
  backend_->abort(message);
}

void GroupCommunicator::check_parts(const char* operation, std::size_t whole,
                                    std::size_t part) const {
  if (whole == part * size()) return;
  throw ConfigError(cat(operation, " wants ", size(), " equal parts, one for each rank: ", whole,
                        " bytes are not ", size(), " times ", part, "."));
}

void GroupCommunicator::check_root(const char* operation, int root) const {
  if (root >= 0 && root < size()) return;
  throw ConfigError(
      cat(operation, " has root ", root, ", and the ranks are 0 to ", size() - 1, "."));
}

void GroupCommunicator::check_peer(const char* operation, int peer) const {
  if (peer >= 0 && peer < size() && peer != rank()) return;
  throw ConfigError(cat(operation, " by rank ", rank(), " names rank ", peer,
                        "; the others are 0 to ", size() - 1, " without itself."));
}

std::uint64_t GroupCommunicator::elements_of(const char* operation, std::size_t bytes,
                                             DType dtype) {
  if (bytes % size_of(dtype) == 0) return bytes / size_of(dtype);
  throw ConfigError(
      cat(operation, " of ", bytes, " bytes: not a whole number of ", yoke::name_of(dtype), "."));
}

void GroupCommunicator::all_reduce(std::span<std::byte> data, DType dtype, ReduceOp op,
                                   Topology topology) {
  combine_of(dtype, op);
  run({.operation = Operation::kAllReduce,
       .count = elements_of("all_reduce", data.size(), dtype),
       .dtype = dtype,
       .op = op,
       .asked = topology},
      [&](const Call& call) { backend_->all_reduce(call, data); });
}

void GroupCommunicator::reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                       DType dtype, ReduceOp op) {
  combine_of(dtype, op);
  check_parts("reduce_scatter", in.size(), out.size());
  run({.operation = Operation::kReduceScatter,
       .count = elements_of("reduce_scatter", out.size(), dtype),
       .dtype = dtype,
       .op = op},
      [&](const Call& call) { backend_->reduce_scatter(call, in, out); });
}

void GroupCommunicator::all_gather(std::span<const std::byte> in, std::span<std::byte> out) {
  check_parts("all_gather", out.size(), in.size());
  run({.operation = Operation::kAllGather, .count = in.size()},
      [&](const Call& call) { backend_->all_gather(call, in, out); });
}

void GroupCommunicator::reduce(std::span<std::byte> data, DType dtype, ReduceOp op, int root) {
  combine_of(dtype, op);
  check_root("reduce", root);
  run({.operation = Operation::kReduce,
       .count = elements_of("reduce", data.size(), dtype),
       .dtype = dtype,
       .op = op,
       .root = root},
      [&](const Call& call) { backend_->reduce(call, data); });
}

void GroupCommunicator::broadcast(std::span<std::byte> data, int root) {
  check_root("broadcast", root);
  run({.operation = Operation::kBroadcast, .count = data.size(), .root = root},
      [&](const Call& call) { backend_->broadcast(call, data); });
}

void GroupCommunicator::all_to_all(std::span<const std::byte> in, std::span<std::byte> out) {
  check_parts("all_to_all", in.size(), in.size() / size());
  check_parts("all_to_all", out.size(), in.size() / size());
  run({.operation = Operation::kAllToAll, .count = in.size()},
      [&](const Call& call) { backend_->all_to_all(call, in, out); });
}

void GroupCommunicator::gather(std::span<const std::byte> in, std::span<std::byte> out, int root) {
  check_root("gather", root);
  if (rank() == root) check_parts("gather", out.size(), in.size());
  run({.operation = Operation::kGather, .count = in.size(), .root = root},
      [&](const Call& call) { backend_->gather(call, in, out); });
}

void GroupCommunicator::scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) {
  check_root("scatter", root);
  if (rank() == root) check_parts("scatter", in.size(), out.size());
  run({.operation = Operation::kScatter, .count = out.size(), .root = root},
      [&](const Call& call) { backend_->scatter(call, in, out); });
}

void GroupCommunicator::barrier() {
  run({.operation = Operation::kBarrier}, [&](const Call& call) { backend_->barrier(call); });
}

void GroupCommunicator::barrier(Clock::duration timeout) {
  run({.operation = Operation::kBarrier, .timeout = timeout},
      [&](const Call& call) { backend_->barrier(call); });
}

void GroupCommunicator::send(std::span<const std::byte> data, int peer) {
  check_peer("send", peer);
  run({.operation = Operation::kSend, .count = data.size()}, sent_[peer],
      [&](const Call& call) { backend_->send(call, data, peer); });
}

void GroupCommunicator::receive(std::span<std::byte> data, int peer) {
  check_peer("receive", peer);
  run({.operation = Operation::kReceive, .count = data.size()}, received_[peer], [&](Call call) {
    // Both ends must write down the same.
    call.tag.operation = static_cast<std::uint8_t>(Operation::kSend);
    backend_->receive(call, data, peer);
  });
}

void GroupCommunicator::reduce_blocks(const BlockPlan& plan,
                                      std::span<const std::span<const std::byte>> mine,
                                      std::span<std::byte> out, DType dtype, Topology topology) {
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    throw ConfigError(
        cat("reduce_blocks adds float32 or float64, not ", yoke::name_of(dtype), "."));
  }
  if (plan.ranks() != size() || plan.leaves() == 0) {
    throw ConfigError(cat("reduce_blocks wants a plan of at least one leaf for ", size(),
                          " ranks; this one has ", plan.leaves(), " for ", plan.ranks(), "."));
  }
  if (static_cast<int>(mine.size()) != plan.held_by(rank())) {
    throw ConfigError(cat("reduce_blocks got ", mine.size(), " blocks of rank ", rank(),
                          ", which holds ", plan.held_by(rank()), " in the plan."));
  }
  for (const auto& block : mine) {
    if (block.size() != out.size()) {
      throw ConfigError(cat("reduce_blocks got a block of ", block.size(),
                            " bytes for an output of ", out.size(),
                            "; all blocks have the size of the output."));
    }
  }
  run({.operation = Operation::kReduceBlocks,
       .count = elements_of("reduce_blocks", out.size(), dtype),
       .dtype = dtype,
       // Ranks with different plans would add different things.
       .root = static_cast<int>(plan.fingerprint() & 0x7fffffff),
       .asked = topology},
      [&](const Call& call) { backend_->reduce_blocks(call, plan, mine, out); });
}

std::shared_ptr<SharedSections> GroupCommunicator::share(std::size_t bytes_per_rank) {
  std::shared_ptr<SharedSections> sections;
  run({.operation = Operation::kShare, .count = bytes_per_rank},
      [&](const Call& call) { sections = backend_->share(call, bytes_per_rank); });
  return sections;
}

}  // namespace yoke::comm
